"""Trace files of any kind, read once into columns."""
