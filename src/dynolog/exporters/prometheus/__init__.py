"""Prometheus: pages to scrape, and remote-write."""
