"""Fuzzing of everything that reads bytes from outside: what to feed them to, and what may come of it (docs/soak.md)."""
