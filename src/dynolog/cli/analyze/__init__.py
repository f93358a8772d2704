"""dyno analyze."""
