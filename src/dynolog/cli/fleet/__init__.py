"""Subcommands on many hosts."""
