"""Destinations of records; registered in registry.py."""
