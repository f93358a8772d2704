"""Looks at trainers' processes on a thread of its own, because reading another process can block for as long as it likes."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import Protocol

from dynolog.model.clock import Clock
from dynolog.sources.process import ProcessFacts, ProcessStat

# A look takes well under a millisecond; one that has not returned by now hangs on a lock of that process.
STALL_S = 2.0
_STALL_NS = int(STALL_S * 1e9)
# Looks that hang cost a thread each until they return; after that many, details of new trainers must wait. A process can make looks at
# it hang for as long as it likes (its arguments on a file system of its own), so one user may not have all of them.
_MOST_STALLED = 12
MOST_STALLED_OF_USER = 4
_LONGEST_QUEUE = 16384


class Facts(Protocol):
    """Reads the facts of a process (sources.process.ProcessReader); only `facts` may block."""

    def stat(self, pid: int) -> ProcessStat:
        """`/proc/PID/stat` alone. Raises OSError or ValueError."""
        ...

    def exists(self, pid: int) -> bool:
        """Whether a process has this pid here now."""
        ...

    def facts(self, pid: int) -> ProcessFacts:
        """Raises OSError or ValueError when they cannot be had."""
        ...


class _Worker:
    """One thread, and what it is reading since when (monotonic ns); `pid` 0 while it reads nothing."""

    __slots__ = ("abandoned", "pid", "serial", "since_ns", "uid")

    def __init__(self) -> None:
        self.serial = 0
        self.uid = 0
        self.pid = 0
        self.since_ns = 0
        self.abandoned = False


class Inspector:
    """Answers `ask(serial, pid)` with `on_facts(serial, facts)` on the loop, facts None when they cannot be read.

    One look runs at a time. One that hangs costs the details of that process: another thread goes on with the rest.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        reader: Facts,
        clock: Clock,
        on_facts: Callable[[int, ProcessFacts | None], None],
    ) -> None:
        self._loop = loop
        self._reader = reader
        self._clock = clock
        self._on_facts = on_facts
        self._queue: deque[tuple[int, int, int]] = deque()
        self._results: deque[tuple[int, ProcessFacts | None]] = deque()
        self._wake = threading.Condition()
        self._worker: _Worker | None = None
        self._stalled: list[_Worker] = []
        self._outstanding: set[int] = set()
        self._waiters: set[asyncio.Future[None]] = set()
        self._check: asyncio.TimerHandle | None = None
        self._draining = False
        self._closed = False
        self.dropped = 0
        self.left_out = 0
        self.failures = 0

    def ask(self, serial: int, pid: int, uid: int) -> None:
        """Have a look soon at `pid`, a process of user `uid`. Never waits.

        When the queue is full, or too many looks at processes of that user hang, the details of this one stay unknown, and it is counted.
        """
        if self._closed or serial in self._outstanding or any(worker.serial == serial for worker in self._stalled):
            return
        if len(self._queue) >= _LONGEST_QUEUE:
            self.dropped += 1
            return
        if self._hangs(uid):
            self.left_out += 1
            self._loop.call_soon(self._on_facts, serial, None)
            return
        self._outstanding.add(serial)
        with self._wake:
            self._queue.append((serial, pid, uid))
            self._wake.notify()
        if self._worker is None:
            self._start_worker()
        if self._check is None:
            self._check = self._loop.call_later(STALL_S, self.look_for_stall)

    async def wait(self, serials: Collection[int], timeout_s: float) -> None:
        """Return when none of `serials` is being looked at any more, or after `timeout_s`."""
        deadline = self._loop.time() + timeout_s
        while not self._outstanding.isdisjoint(serials):
            changed: asyncio.Future[None] = self._loop.create_future()
            self._waiters.add(changed)
            try:
                await asyncio.wait_for(changed, deadline - self._loop.time())
            except TimeoutError:
                return
            finally:
                self._waiters.discard(changed)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know: which looks hang, and how many were left out."""
        said = [
            f"reading /proc/{worker.pid} has not returned (its memory map is locked): details of that trainer are unknown"
            for worker in self._stalled
            if worker.pid
        ]
        if self.left_out:
            said.append(f"details of {self.left_out} trainers were not read: looks at others of the same user hang")
        if self.dropped:
            said.append(f"details of {self.dropped} trainers were not read: too many registered at once")
        return tuple(said)

    def close(self) -> None:
        """Stop; a look that hangs is left to its daemon thread."""
        self._closed = True
        if self._check is not None:
            self._check.cancel()
        with self._wake:
            self._queue.clear()
            if self._worker is not None:
                self._worker.abandoned = True
            self._wake.notify_all()

    def _start_worker(self) -> None:
        self._worker = _Worker()
        threading.Thread(target=self._run, args=(self._worker,), name="inspector", daemon=True).start()

    def _run(self, worker: _Worker) -> None:
        while True:
            with self._wake:
                while not self._queue and not worker.abandoned:
                    self._wake.wait()
                if worker.abandoned:
                    return
                serial, pid, uid = self._queue.popleft()
            worker.serial, worker.uid = serial, uid
            worker.since_ns = self._clock.monotonic_ns()
            worker.pid = pid
            facts = self._look(pid)
            worker.pid = 0
            self._results.append((serial, facts))
            self._tell_loop()

    def _look(self, pid: int) -> ProcessFacts | None:
        try:
            return self._reader.facts(pid)
        except (OSError, ValueError):  # gone, or hidden from us (hidepid)
            return None
        except Exception:  # noqa: BLE001 - the boundary of the thread: counted, and only this process has no details
            self.failures += 1
            return None

    def _tell_loop(self) -> None:
        if not self._draining and not self._closed:
            self._draining = True  # one wake-up for all results until it has run
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:  # the loop was closed while we read
                self._closed = True

    def _drain(self) -> None:
        self._draining = False
        while self._results:
            serial, facts = self._results.popleft()
            self._outstanding.discard(serial)
            self._on_facts(serial, facts)
        self._stalled = [worker for worker in self._stalled if worker.pid]
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _give_up_on(self, worker: _Worker) -> None:
        worker.abandoned = True
        self._stalled.append(worker)
        self._outstanding.discard(worker.serial)
        self._on_facts(worker.serial, None)  # nobody shall wait for it; what it finds in the end is still taken
        if self._hangs(worker.uid):
            self._leave_out(worker.uid)
        self._start_worker()
        self._wake_waiters()

    def _hangs(self, uid: int) -> bool:
        """Whether as many looks at processes of this user hang as may."""
        return sum(worker.uid == uid and worker.pid != 0 for worker in self._stalled) >= MOST_STALLED_OF_USER

    def _leave_out(self, uid: int) -> None:
        """Look at no more processes of this user."""
        with self._wake:
            left_out = [serial for serial, _, of_uid in self._queue if of_uid == uid]
            self._queue = deque(entry for entry in self._queue if entry[2] != uid)
        self.left_out += len(left_out)
        for serial in left_out:
            self._outstanding.discard(serial)
            self._on_facts(serial, None)

    def look_for_stall(self) -> None:
        """Go on without a look that hangs. Called every 2 s while there is one to wait for."""
        self._check = None
        worker = self._worker
        stalled = worker is not None and worker.pid and self._clock.monotonic_ns() - worker.since_ns >= _STALL_NS
        if worker is not None and stalled and len(self._stalled) < _MOST_STALLED:
            self._give_up_on(worker)
        if self._outstanding and not self._closed:
            self._check = self._loop.call_later(STALL_S, self.look_for_stall)
