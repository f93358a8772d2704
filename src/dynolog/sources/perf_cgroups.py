"""Directories of control groups that counters can follow (cgroups(7), perf_event_open(2) with PERF_FLAG_PID_CGROUP)."""

import fnmatch
import os
from collections.abc import Iterable

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles

# Where version 1 has the controller, then where version 2 is mounted: alone, or beside version 1. Version 2 always has it, unless a
# version 1 hierarchy has taken it.
_ROOTS = (
    ("sys/fs/cgroup/perf_event", "tasks"),
    ("sys/fs/cgroup", "cgroup.controllers"),
    ("sys/fs/cgroup/unified", "cgroup.controllers"),
)
# More would be a pattern that is wider than was meant.
MOST_CGROUPS = 256
_MOST_VISITED = 20_000


def perf_cgroup_root(host: HostFiles) -> str:
    """The hierarchy that counters follow, below the root. Raises SourceUnavailable when none is mounted."""
    for root, sign in _ROOTS:
        if os.path.exists(host.path(f"{root}/{sign}")):
            return root
    raise SourceUnavailable(
        "cgroups of perf",
        "neither a cgroup v1 perf_event hierarchy nor cgroup v2 is mounted at /sys/fs/cgroup",
        "mount one (mount -t cgroup -o perf_event cgroup /sys/fs/cgroup/perf_event), or show the host's to the container",
    )


def find_cgroups(host: HostFiles, root: str, patterns: Iterable[str]) -> list[str]:
    """Paths of the cgroups that `patterns` name, each from the root of the hierarchy (`/system.slice/ssh.service`), sorted.

    A pattern is such a path; `*`, `?` and `[...]` in it match within one name. Never more than MOST_CGROUPS.
    """
    found: set[str] = set()
    for pattern in patterns:
        found.update(_matching(host.path(root), [part for part in pattern.split("/") if part not in ("", ".")]))
    return sorted(found)[:MOST_CGROUPS]


def _matching(root: str, parts: list[str]) -> list[str]:
    if ".." in parts:
        return []
    paths = [""]
    for part in parts:
        if any(char in part for char in "*?["):
            below = [
                f"{path}/{name}" for path in paths for name in _children(root + path) if fnmatch.fnmatchcase(name, part)
            ]
        else:
            below = [child for path in paths if os.path.isdir(root + (child := f"{path}/{part}"))]
        paths = below[:_MOST_VISITED]
    return [path or "/" for path in paths]


def _children(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def open_cgroup(host: HostFiles, root: str, path: str) -> int:
    """A descriptor of the cgroup's directory for PERF_FLAG_PID_CGROUP. Raises OSError."""
    return os.open(host.path(root) + path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
