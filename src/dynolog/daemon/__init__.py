"""Flags, wiring and life cycle of the dynolog daemon."""
