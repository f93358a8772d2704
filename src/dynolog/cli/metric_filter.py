"""Which metrics a person wants to see."""

from fnmatch import fnmatchcase


def matches(key: str, pattern: str) -> bool:
    """Whether a key has the pattern in it; with `*`, `?` or `[` in it, whether the whole key is like it. "" is every key."""
    if any(char in pattern for char in "*?["):
        return fnmatchcase(key, pattern)
    return pattern in key
