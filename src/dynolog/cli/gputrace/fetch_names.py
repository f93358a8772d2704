"""Names for files that are brought here. What a daemon says is never trusted as a path."""

import re
from collections.abc import Iterable

from dynolog.cli.printable import printable
from dynolog.model.capture import CaptureInfo

_MAX_NAME_BYTES = 200  # room for what is put before and after it; names may have 255
_UNSAFE = re.compile(r"[/\\\0]")


def safe_name(name: str) -> str:
    """The last part of a path, printable, never hidden, never `.` or `..`, never longer than a file name may be."""
    last = printable(_UNSAFE.split(name)[-1]).replace("\\", "_").lstrip(".").strip()
    encoded = last.encode("utf-8", "replace")
    if len(encoded) > _MAX_NAME_BYTES:
        last = encoded[-_MAX_NAME_BYTES:].decode("utf-8", "ignore").lstrip(".")
    return last or "trace.json"


def names_for(captures: Iterable[CaptureInfo]) -> dict[str, str]:
    """A name here for each capture id. Processes of two containers may write files of one name: those get the host's pid too."""
    wanted = {capture.id: (capture, safe_name(capture.path)) for capture in captures}
    taken: dict[str, int] = {}
    for _, name in wanted.values():
        taken[name] = taken.get(name, 0) + 1
    names: dict[str, str] = {}
    used: set[str] = set()
    for capture_id, (capture, name) in wanted.items():
        chosen = name if taken[name] == 1 else with_suffix(name, f"_host{capture.host_pid}")
        if chosen in used:
            chosen = with_suffix(name, f"_{safe_name(capture_id)}")
        used.add(chosen)
        names[capture_id] = chosen
    return names


def with_suffix(name: str, suffix: str) -> str:
    """`t_1.json` → `t_1_host77.json`; `.json.gz` keeps together."""
    stem, dot, end = name.partition(".json")
    return f"{stem}{suffix}{dot}{end}" if dot else name + suffix
