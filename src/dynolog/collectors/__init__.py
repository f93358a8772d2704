"""Arithmetic on two snapshots of one source; registered in registry.py."""
