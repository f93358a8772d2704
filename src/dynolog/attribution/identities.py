"""Identities of processes, looked up on threads of their own: a look that hangs costs the labels of that process, and nobody waits."""

import logging
import os
import threading
import time
from collections import deque
from typing import Protocol

from dynolog.attribution.process_identity import ProcessIdentity

_log = logging.getLogger(__name__)

# A look takes a fraction of a millisecond; one that takes this long hangs on a lock of that process.
STALL_S = 2.0
MOST_STALLED = 8
# A process can make looks at it hang for as long as it likes, so one user may not have all of them.
MOST_STALLED_OF_USER = 2
_LONGEST_QUEUE = 4096
_MOST_KNOWN = 1024
# A process whose environment could not be read may have changed its user, or we our rights.
_LOOK_AGAIN_S = 60.0
# Who has not been asked for that long is on no device any more.
_FORGET_S = 300.0


class Look(Protocol):
    """Reads processes (attribution.process_identity.IdentityReader)."""

    def start_time(self, pid: int) -> int:
        """Never blocks. Raises OSError, ValueError."""
        ...

    def owner(self, pid: int) -> int:
        """The uid whose process it is, -1 for none. Never blocks."""
        ...

    def look(self, pid: int) -> ProcessIdentity:
        """May block. Raises OSError, ValueError."""
        ...


class _Thread:
    """One thread that looks, and since when it has been looking at which process (0: at none) of which user."""

    __slots__ = ("abandoned", "pid", "since_s", "uid")

    def __init__(self) -> None:
        self.abandoned = False
        self.pid = 0
        self.uid = -1
        self.since_s = 0.0


class _Entry:
    """What is known of a process, when it was looked at, and when it was last asked for."""

    __slots__ = ("asked_s", "identity", "looked_s")

    def __init__(self, identity: ProcessIdentity, now_s: float) -> None:
        self.identity = identity
        self.looked_s = now_s
        self.asked_s = now_s


class Identities:
    """Answers at once with what is known, and looks at what is not. `get` and `notices` are called from one thread."""

    def __init__(self, reader: Look) -> None:
        self._reader = reader
        self._known: dict[int, _Entry] = {}
        self._queue: deque[tuple[int, int]] = deque()
        self._waiting: set[int] = set()
        self._wake = threading.Condition()
        self._thread: _Thread | None = None
        self._stalled: list[_Thread] = []
        self._closed = False
        self.failures = 0

    def get(self, pid: int) -> ProcessIdentity | None:
        """The identity of the process that has this pid now; None while it is not known, or when there is none. Never waits."""
        try:
            start_time = self._reader.start_time(pid)
        except (OSError, ValueError):  # it has ended since it was listed, or is hidden from us
            self._known.pop(pid, None)
            return None
        entry = self._known.get(pid)
        if entry is None or entry.identity.start_time_ticks != start_time:
            self._ask(pid)
            return None
        entry.asked_s = time.monotonic()
        if not entry.identity.environment_is_known and entry.asked_s - entry.looked_s > _LOOK_AGAIN_S:
            self._ask(pid)
        return entry.identity

    @property
    def notices(self) -> tuple[tuple[str, str], ...]:
        """(key, sentence) pairs: what a person should know."""
        said = [
            (f"stalled {thread.pid}", f"reading /proc/{thread.pid} has not returned: whose process it is stays unknown")
            for thread in self._stalled
            if thread.pid
        ]
        recent_s = time.monotonic() - _LOOK_AGAIN_S
        with self._wake:
            entries = tuple(self._known.values())
        if any(not entry.identity.environment_is_known and entry.asked_s > recent_s for entry in entries):
            said.append(
                (
                    "environ",
                    f"the environment of processes on a GPU cannot be read, so their jobs stay unknown: {_remedy()}",
                )
            )
        return tuple(said)

    def wait_idle(self, timeout_s: float) -> bool:
        """Whether everything that was asked for has been looked at, within that time; for tests and one-off uses."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._waiting, timeout_s)

    def close(self) -> None:
        """Stop; a look that hangs is left to its daemon thread."""
        with self._wake:
            self._closed = True
            self._queue.clear()
            self._wake.notify_all()

    def _ask(self, pid: int) -> None:
        with self._wake:
            if self._closed:
                return
            self._replace_stalled()
            uid = self._reader.owner(pid)
            if pid not in self._waiting and not self._hangs(pid, uid) and len(self._queue) < _LONGEST_QUEUE:
                self._waiting.add(pid)
                self._queue.append((pid, uid))
                self._wake.notify()
            if self._thread is None and self._queue:
                self._thread = _Thread()
                threading.Thread(target=self._run, args=(self._thread,), name="attribution", daemon=True).start()

    def _hangs(self, pid: int, uid: int) -> bool:
        """Whether a look at this process hangs, or as many of its user as may."""
        of_user = sum(thread.uid == uid and thread.pid != 0 for thread in self._stalled)
        return of_user >= MOST_STALLED_OF_USER or any(thread.pid == pid for thread in self._stalled)

    def _replace_stalled(self) -> None:
        self._stalled = [thread for thread in self._stalled if thread.pid]
        thread = self._thread
        if (
            thread is not None
            and thread.pid
            and time.monotonic() - thread.since_s > STALL_S
            and len(self._stalled) < MOST_STALLED
        ):
            thread.abandoned = True
            self._stalled.append(thread)
            self._waiting.discard(thread.pid)
            self._thread = None

    def _run(self, thread: _Thread) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                pid, thread.uid = self._queue.popleft()
                if self._hangs(pid, thread.uid):
                    self._waiting.discard(pid)
                    self._wake.notify_all()
                    continue
                thread.since_s = time.monotonic()
                thread.pid = pid
            identity = self._look(pid)
            with self._wake:
                thread.pid = 0
                if identity is not None:
                    self._keep(identity)
                if thread.abandoned:
                    return
                self._waiting.discard(pid)
                self._wake.notify_all()

    def _look(self, pid: int) -> ProcessIdentity | None:
        try:
            return self._reader.look(pid)
        except (OSError, ValueError):  # it has ended
            return None
        except Exception:  # noqa: BLE001 - the boundary of the thread: counted, said once, and only this process stays unknown
            self.failures += 1
            if self.failures == 1:
                _log.exception("attribution: a process could not be looked at")
            return None

    def _keep(self, identity: ProcessIdentity) -> None:
        now_s = time.monotonic()
        if len(self._known) >= _MOST_KNOWN:
            self._known = {pid: entry for pid, entry in self._known.items() if now_s - entry.asked_s < _FORGET_S}
        self._known[identity.pid] = _Entry(identity, now_s)


def _remedy() -> str:
    if os.geteuid():
        return "run the daemon as root"
    return "give the daemon CAP_SYS_PTRACE (in a container: capabilities, add: SYS_PTRACE)"
