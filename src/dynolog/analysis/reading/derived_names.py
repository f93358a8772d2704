"""The names of files that were made of a trace, and put beside it."""

from collections.abc import Iterable

_SUFFIXES = (".gz", ".json", ".pt.trace")
# What `dyno trace` puts before the ending by itself (slice, small, strict), and what people write for the same.
_WORDS = (".slice", ".small", ".strict", ".shrink", ".shrunk", ".convert", ".converted", ".merge", ".merged")


def stem(name: str) -> str:
    """A trace's path without its endings: `t.pt.trace.json.gz` → `t`."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def derived_name(path: str, what: str) -> str:
    """Where a command puts what it makes of `path` when it is not told: `t.json` → `t.slice.json.gz`."""
    return f"{stem(path)}.{what}.json.gz"


def is_derived_name(path: str) -> bool:
    """Whether a file's name says that it was made of a trace."""
    return any(_bases(stem(path)))


def derived(paths: Iterable[str]) -> list[str]:
    """Those whose names say that they were made of another one of them; of a file that is not among them, none is."""
    stems = {path: stem(path) for path in paths}
    known = set(stems.values())
    return [path for path, own in stems.items() if any(base in known for base in _bases(own))]


def _bases(own: str) -> Iterable[str]:
    """`t.slice.small` → `t.slice`, `t`."""
    while word := next((word for word in _WORDS if own.endswith(word)), ""):
        own = own.removesuffix(word)
        yield own
