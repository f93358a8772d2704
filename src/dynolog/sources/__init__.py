"""Thin typed readers of one kernel or library interface each, below a root directory."""
