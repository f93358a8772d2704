"""dyno trace validate, info, slice and others: tools for trace files."""
