"""Follows the files of captures, from the first temporary one to the checked final one, on a thread of its own."""

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from dynolog.profiling.check_process import CheckFailed, CheckProcess
from dynolog.profiling.observations import (
    Checked,
    FinalSeen,
    Invalid,
    NothingThere,
    Observation,
    TemporarySeen,
    Unseen,
)
from dynolog.profiling.pinned_roots import Identity, PinnedRoots, is_hidden, refusal, why_unseen
from dynolog.profiling.watched_capture import WatchedCapture
from dynolog.sources.beneath import open_beneath

INTERVAL_S = 0.2
# However many captures there are, looking after them takes at most a twentieth of one CPU.
_IDLE_SHARE = 20
# Of one user's files at once, so that no other user waits for what one has written (a gzip stream of gigabytes); and of all.
MOST_CHECKS = 2
MOST_CHECKS_IN_ALL = 8
# What is there at a first look that comes this soon was there before the trainer could write anything: it looks for a new config to act on
# once a second.
_PROMPT_NS = 250_000_000
STALLED_S = 5.0
# Each look that hangs keeps a thread; after so many, what is left waits for one of them.
MOST_STALLED = 4
PICKLE = ".pickle"
# A memory snapshot is written under its final name: it counts when it has not changed for so long, or its process has ended.
SETTLED_S = 1.0
# Files are stamped with the time of the last timer interrupt.
_CLOCK_TICK_NS = 10_000_000


class TraceWatch:
    """Reports what is seen to `on_observation(capture_id, observation)`, on `loop`.

    The thread runs only while a capture is watched. A file counts from when it has its final name (libkineto renames it when it is whole)
    and is not the one that had that name before; it is then checked by a child process. A disk that hangs costs a thread and the captures
    on it: another thread goes on with the rest, and `stalled` says so.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_observation: Callable[[str, Observation], None]) -> None:
        self._loop = loop
        self._on_observation = on_observation
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._roots = PinnedRoots()
        self._watched: dict[str, WatchedCapture] = {}
        # What the thread looks at, and with it what threads that hang look at.
        self._looking: WatchedCapture | None = None
        self._looks: set[WatchedCapture] = set()
        self._stall_timer: asyncio.TimerHandle | None = None
        self._checks: Counter[int] = Counter()
        # Checks that nobody waits for any more; the thread sees their processes to the end.
        self._ending: list[CheckProcess] = []

    # --- called on the loop; none of these waits for a disk ------------------------------------------------------------

    def watch(self, capture_id: str, host_pid: int, uid: int, candidate_paths: Sequence[str]) -> None:
        """Begin to look for any of `candidate_paths` (final names, as the trainer sees them) of process `host_pid`.

        `uid` is who took the config: only files of that user count, or of anybody when it is 0.
        """
        self.forget(capture_id)
        watched = WatchedCapture(capture_id, host_pid, uid, candidate_paths)
        with self._lock:
            self._pin(watched)
            self._watched[capture_id] = watched
            self._start()
        if self._stall_timer is None:
            self._stall_timer = self._loop.call_later(STALLED_S, self._look_for_stall)

    def _pin(self, watched: WatchedCapture) -> None:
        """Hold the root of its process; under the lock."""
        try:
            watched.root = self._roots.pin(watched.host_pid)
        except OSError as error:
            watched.unseen = why_unseen(error)
            if not watched.unseen and is_hidden(watched.host_pid):
                watched.unseen = (
                    f"the daemon runs as uid {os.geteuid()}, and /proc hides this process from it (hidepid)"
                )

    def look_last(self, capture_id: str) -> None:
        """The process has ended: look once more, and report NothingThere when no new file has a final name."""
        with self._lock:
            if watched := self._watched.get(capture_id):
                watched.last_look = True
                self._start()

    def forget(self, capture_id: str) -> None:
        """End; an unknown id is ignored."""
        with self._lock:
            watched = self._watched.pop(capture_id, None)
            # While a thread looks after it, that thread ends it.
            if watched and watched.looked_since is None:
                self._end(watched)

    def close(self) -> None:
        """Forget all."""
        for capture_id in list(self._watched):
            self.forget(capture_id)
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        self._wake.set()

    @property
    def stalled(self) -> str:
        """A sentence when a thread has been stuck on a capture for more than 5 s, else ""."""
        with self._lock:
            stuck = self._stuck()
        if not stuck:
            return ""
        longest_s, watched = max(stuck, key=lambda one: one[0])
        more = f" (and {len(stuck) - 1} more)" if len(stuck) > 1 else ""
        return (
            f"trace files are not being followed: {watched.paths[0]} of process {watched.host_pid} has not answered "
            f"for {longest_s:.0f} s{more}"
        )

    def _stuck(self) -> list[tuple[float, WatchedCapture]]:
        """Looks that do not return, with their age in s; under the lock."""
        now = time.monotonic()
        looks = ((now - one.looked_since, one) for one in self._looks if one.looked_since is not None)
        return [look for look in looks if look[0] >= STALLED_S]

    def _look_for_stall(self) -> None:
        """Let another thread go on where one hangs."""
        self._stall_timer = None
        with self._lock:
            stuck = self._stuck()
            if self._looking in [one for _, one in stuck] and len(stuck) <= MOST_STALLED:
                self._thread = None
                self._start()
            going_on = any(not watched.done for watched in self._watched.values())
        if going_on:
            self._stall_timer = self._loop.call_later(STALLED_S, self._look_for_stall)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="trace-watch", daemon=True)
            self._thread.start()
        self._wake.set()

    # --- called on any thread ------------------------------------------------------------------------------------------

    def open(self, capture_id: str) -> int:
        """A descriptor of the file that was checked, for the caller to close. Blocks.

        Raises OSError: ENOENT when nothing was checked or the name is gone, ESTALE when it is not the same file any more.
        """
        with self._lock:
            watched = self._watched.get(capture_id)
            if watched is None or not watched.checked:
                raise FileNotFoundError(errno.ENOENT, "no file of this capture was checked", capture_id)
            # Links in the host's name of it may lead anywhere: it is the comparison below that counts.
            path = watched.path if watched.root else watched.host_path
            root_fd = os.dup(watched.root.fd) if watched.root else os.open("/", os.O_PATH | os.O_CLOEXEC)
        try:
            fd = open_beneath(root_fd, path, os.O_RDONLY)
        finally:
            os.close(root_fd)
        info = os.fstat(fd)
        if Identity.of(info) != watched.found or refusal(info, watched.uid):
            os.close(fd)
            raise OSError(errno.ESTALE, "the file has changed since it was checked", watched.path)
        return fd

    # --- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            self._wake.clear()
            began = time.monotonic()
            with self._lock:
                if self._thread is not me:
                    self._start()  # it hung, and another took its place: that one may have ended since
                    return
                # Ours is not among these looks: they hang in other threads, and their directories would take us as well.
                dead = {one.place for one in self._looks}
                waiting = [one for one in self._watched.values() if not one.done and one.looked_since is None]
                active = [one for one in waiting if one.place not in dead]
                self._ending = [check for check in self._ending if not check.is_reaped]
                if not waiting and not self._ending:
                    self._thread = None
                    return
            for watched in active:
                self._look_after(watched)
            self._wake.wait(max(INTERVAL_S, (time.monotonic() - began) * _IDLE_SHARE))

    def _look_after(self, watched: WatchedCapture) -> None:
        with self._lock:
            if (
                self._watched.get(watched.id) is not watched
                or watched.looked_since is not None
                or self._thread is not threading.current_thread()
            ):
                return
            self._looking = watched
            self._looks.add(watched)
            watched.looked_since = time.monotonic()
        try:
            if watched.found is None:
                self._look(watched)
            if watched.found is not None:
                self._check(watched)
        except Exception as error:  # noqa: BLE001 - the boundary of the thread: it is reported as the end of this capture alone
            self._refuse(
                watched, watched.path or watched.paths[0], f"following it failed ({type(error).__name__}: {error})"
            )
        finally:
            with self._lock:
                if self._looking is watched:
                    self._looking = None
                self._looks.discard(watched)
                watched.looked_since = None
                if self._watched.get(watched.id) is not watched:
                    self._end(watched)

    def _look(self, watched: WatchedCapture) -> None:
        last = watched.last_look  # before looking: a file that comes after it is not missed
        if watched.root is not None:
            watched.unseen = ""
        elif watched.unseen and not last:  # while its process lives, what was in the way may go
            watched.unseen = ""
            with self._lock:
                self._pin(watched)
        if watched.stale is None:
            stale = self._stale(watched)
            # What could not be looked at may be old.
            watched.stale = None if watched.unseen else stale
        if watched.stale is not None and self._look_for_final(watched, watched.stale, last):
            return
        if watched.unseen != watched.told_unseen:
            watched.told_unseen = watched.unseen
            self._report(watched, Unseen(watched.unseen))
        if last:
            watched.done = True
            self._report(watched, NothingThere())

    def _look_for_final(self, watched: WatchedCapture, stale: dict[str, Identity], last: bool) -> bool:
        for path in watched.paths:
            info = self._info(watched, path)
            if (
                info is not None
                and stale.get(path) != Identity.of(info)
                and self._is_settled(watched, path, info, last)
            ):
                self._found(watched, path, info)
                return True
        self._look_for_temporary(watched)
        return False

    def _is_settled(self, watched: WatchedCapture, path: str, info: os.stat_result, last: bool) -> bool:
        if last or not path.endswith(PICKLE):
            return True
        now, seen = time.monotonic(), Identity.of(info)
        if watched.settling is None or watched.settling[0] != seen:
            watched.settling = seen, now
            self._report(watched, TemporarySeen(info.st_size))
        return now - watched.settling[1] >= SETTLED_S

    @staticmethod
    def _info(watched: WatchedCapture, path: str) -> os.stat_result | None:
        try:
            return watched.root.look(path) if watched.root else None
        except OSError as error:
            watched.unseen = why_unseen(error)
            return None

    def _stale(self, watched: WatchedCapture) -> dict[str, Identity]:
        """What already has one of the names. At a first look that comes late only what has not changed since the begin."""
        prompt = time.time_ns() - watched.begun_ns < _PROMPT_NS
        stale: dict[str, Identity] = {}
        for path in (*watched.paths, *(path + ".tmp" for path in watched.paths)):
            info = self._info(watched, path)
            if info is not None and (prompt or info.st_ctime_ns < watched.begun_ns - _CLOCK_TICK_NS):
                stale[path] = Identity.of(info)
        return stale

    def _look_for_temporary(self, watched: WatchedCapture) -> None:
        assert watched.stale is not None
        for path in watched.paths:
            info = self._info(watched, path + ".tmp")
            if info is None or watched.stale.get(path + ".tmp") == Identity.of(info):
                continue
            if info.st_size != watched.temporary_bytes:
                watched.temporary_bytes = info.st_size
                self._report(watched, TemporarySeen(info.st_size))
            return

    def _found(self, watched: WatchedCapture, path: str, info: os.stat_result) -> None:
        assert watched.root is not None
        watched.path = path
        if reason := refusal(info, watched.uid):
            self._refuse(watched, path, reason)
            return
        watched.found = Identity.of(info)
        watched.host_path = watched.root.host_path(watched.host_pid, path, watched.found)
        self._report(watched, FinalSeen(path, watched.host_path, info.st_size))

    def _check(self, watched: WatchedCapture) -> None:
        try:
            if watched.check is None:
                if self._checks[watched.uid] < MOST_CHECKS and self._checks.total() < MOST_CHECKS_IN_ALL:
                    check = self._start_check(watched)
                    with self._lock:
                        watched.check = check
                        self._checks[watched.uid] += 1
                return
            file = watched.check.poll()
        except OSError as error:
            reason = f"the daemon cannot read it: {error.strerror or error}"
            if isinstance(error, PermissionError):
                reason += " (files of other users take CAP_DAC_READ_SEARCH)"
            self._refuse(watched, watched.path, reason, was_read=False)
        except CheckFailed as failed:
            with self._lock:
                self._over(watched)
            self._refuse(watched, watched.path, str(failed))
        else:
            if file is not None:
                with self._lock:
                    self._over(watched)
                    # A file that the host has a name for needs the trainer's mounts no longer, and they may be in somebody's way.
                    if watched.host_path and watched.host_path != f"/proc/{watched.host_pid}/root{watched.path}":
                        self._release_root(watched)
                watched.checked = watched.done = True
                self._report(watched, Checked(file, watched.path, watched.host_path))

    def _start_check(self, watched: WatchedCapture) -> CheckProcess:
        assert watched.root is not None
        fd = open_beneath(watched.root.fd, watched.path, os.O_RDONLY)
        try:
            info = os.fstat(fd)
            if reason := refusal(info, watched.uid):
                raise CheckFailed(reason)
            # It may have been replaced since it was seen: what is checked is what counts.
            watched.found = Identity.of(info)
            return CheckProcess(fd, pickled=watched.path.endswith(PICKLE))
        finally:
            os.close(fd)

    def _over(self, watched: WatchedCapture) -> None:
        """The check of a capture has an answer, or nobody wants it any more; under the lock."""
        if (check := watched.check) is not None:
            watched.check = None
            self._checks[watched.uid] -= 1
            if not self._checks[watched.uid]:
                del self._checks[watched.uid]
            if not check.is_reaped:
                check.abandon()
                self._ending.append(check)

    def _refuse(self, watched: WatchedCapture, path: str, reason: str, was_read: bool = True) -> None:
        watched.done = True
        self._report(watched, Invalid(path, reason, was_read))

    def _end(self, watched: WatchedCapture) -> None:
        """Let go of all that a capture holds; under the lock."""
        self._over(watched)
        self._release_root(watched)

    def _release_root(self, watched: WatchedCapture) -> None:
        if watched.root is not None:
            self._roots.release(watched.root)
            watched.root = None

    def _report(self, watched: WatchedCapture, observation: Observation) -> None:
        # The loop is closed when the daemon has stopped: nobody wants to know any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, watched.id, watched, observation)

    def _deliver(self, capture_id: str, watched: WatchedCapture, observation: Observation) -> None:
        # On the loop: what was forgotten meanwhile is not reported.
        if self._watched.get(capture_id) is watched:
            self._on_observation(capture_id, observation)
