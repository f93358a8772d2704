"""dyno perf."""
