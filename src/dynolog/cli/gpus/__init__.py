"""dyno gpus."""
