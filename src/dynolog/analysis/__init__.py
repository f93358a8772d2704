"""From a trace to an answer."""
