"""perf_event_open(2) from Python: what to count, groups of counters, what they read, and why the kernel refuses."""
