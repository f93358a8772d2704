"""What the trace of one process tells."""
