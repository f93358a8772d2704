"""What the watch of trace files knows of one capture."""

import os
import time
from collections.abc import Sequence

from dynolog.profiling.check_process import CheckProcess
from dynolog.profiling.pinned_roots import Identity, PinnedRoot


class WatchedCapture:
    """One capture that is looked after."""

    def __init__(self, capture_id: str, host_pid: int, uid: int, paths: Sequence[str]) -> None:
        self.id = capture_id
        self.host_pid = host_pid
        self.uid = uid
        self.paths = tuple(paths)
        self.root: PinnedRoot | None = None
        # Why nothing can be seen ("": it can), and what was told of that.
        self.unseen = ""
        self.told_unseen = ""
        self.begun_ns = time.time_ns()
        # What had the names before the capture began, by name.
        self.stale: dict[str, Identity] | None = None
        self.temporary_bytes = -1
        # A memory snapshot gets its final name before it is whole: what was seen of it, and since when.
        self.settling: tuple[Identity, float] | None = None
        self.path = ""
        self.host_path = ""
        self.found: Identity | None = None
        self.check: CheckProcess | None = None
        self.looked_since: float | None = None  # monotonic s, while a thread looks after it
        self.last_look = False
        self.done = False
        self.checked = False

    @property
    def place(self) -> tuple[object, str]:
        """What tells the directory of its file from others."""
        return self.root, os.path.dirname(self.paths[0])
