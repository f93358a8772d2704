"""A whole profiling room on fakes: time, processes, files and trainers are what a test says."""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from dynolog.ipc.handler import Sender
from dynolog.ipc.wire import ConfigRequest, ContextMessage
from dynolog.model.capture import TraceFile
from dynolog.model.errors import SourceUnavailable
from dynolog.model.held_gpu import HeldGpu
from dynolog.model.trace_request import Caller, TraceOutcome, TraceRequest, Transport
from dynolog.model.trainer import Peer
from dynolog.profiling.capture_desk import CaptureDesk
from dynolog.profiling.destinations import Destination
from dynolog.profiling.host_windows import HostSampler
from dynolog.profiling.observations import Observation
from dynolog.profiling.registry import SILENT_S
from dynolog.profiling.service import TraceService
from dynolog.sources.process import Ancestor, ProcessFacts, ProcessStat

ROOT = Caller(transport=Transport.UNIX, uid=0)
CONFIG = "ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=500\n"
ITERATIONS = "ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=10\nACTIVITIES_ITERATIONS=3\n"
FILE = TraceFile(size_bytes=1000, sha256="ab", events=42)


class ManualClock:
    """Both clocks stand still until a test moves them."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * 10**9
        self.wall_offset_ns = 1_700_000_000 * 10**9

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + self.wall_offset_ns

    def pass_s(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


class FakeProcesses:
    """Processes that end when a test says so (registry.ProcessWatch)."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.tokens: dict[int, int] = {}
        self._ended: list[int] = []
        self._serial = 0
        self.missing: set[int] = set()
        self.forbidden = False

    def fileno(self) -> int:
        return self._read

    def watch(self, pid: int) -> int:
        if pid in self.missing:
            raise ProcessLookupError
        if self.forbidden:
            raise SourceUnavailable("pidfd", "this kernel has no pidfd_open", "use Linux 5.3 or later")
        self._serial += 1
        self.tokens[self._serial] = pid
        return self._serial

    def forget(self, token: int) -> None:
        self.tokens.pop(token, None)

    def gone(self) -> list[int]:
        ended, self._ended = self._ended, []
        for token in ended:
            del self.tokens[token]
        return ended

    def end(self, pid: int) -> None:
        """The process ends; nobody has looked yet."""
        self._ended += [token for token, watched in self.tokens.items() if watched == pid]

    def close(self) -> None:
        if self._read >= 0:
            os.close(self._read)
            os.close(self._write)
            self._read = -1


class FakeReader:
    """Facts of processes that a test made up (inspector.Facts); `hang` blocks as a locked memory map does."""

    def __init__(self) -> None:
        self.processes: dict[int, ProcessFacts] = {}
        self.hang: Callable[[int], None] = lambda pid: None
        self.reads = 0

    def facts(self, pid: int) -> ProcessFacts:
        self.reads += 1
        self.hang(pid)
        try:
            return self.processes[pid]
        except KeyError:
            raise ProcessLookupError from None

    def stat(self, pid: int) -> ProcessStat:
        return self.facts(pid).stat

    def exists(self, pid: int) -> bool:
        return pid in self.processes


class FakeWatch:
    """Keeps what it was asked to watch; a test reports what it "saw"."""

    def __init__(self, report: Callable[[str, Observation], None]) -> None:
        self.report = report
        self.watched: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.uids: dict[str, int] = {}
        self.last_looks: list[str] = []
        self.open_error: OSError | None = None
        self.stalled = ""

    def watch(self, capture_id: str, host_pid: int, uid: int, candidate_paths: tuple[str, ...]) -> None:
        self.watched[capture_id] = (host_pid, candidate_paths)
        self.uids[capture_id] = uid

    def look_last(self, capture_id: str) -> None:
        self.last_looks.append(capture_id)

    def forget(self, capture_id: str) -> None:
        self.watched.pop(capture_id, None)

    def open(self, capture_id: str) -> int:
        if self.open_error:
            raise self.open_error
        return os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        self.watched.clear()


def facts(
    pid: int,
    *,
    inner: tuple[int, ...] = (),
    ancestors: tuple[tuple[int, ...], ...] = (),
    command: str = "python train.py",
    name: str = "python",
    start: int = 7,
    namespace: int = 1,
    gpu: bool = False,
    gpus: tuple[str, ...] = (),
    cpu_s: float = 0.0,
    **environment: str | int,
) -> ProcessFacts:
    """A process `pid` here, `inner` inside namespaces; each ancestor is a pid here and its pids inside."""
    return ProcessFacts(
        stat=ProcessStat(pid, name, ancestors[0][0] if ancestors else 1, start, int(cpu_s * os.sysconf("SC_CLK_TCK"))),
        namespace_pids=(pid, *inner),
        ancestors=tuple(Ancestor(chain[0], chain) for chain in ancestors),
        pid_namespace=namespace,
        arguments=tuple(command.split()),
        environment={key: str(value) for key, value in environment.items()},
        holds_gpu=gpu or bool(gpus),
        gpus=tuple(HeldGpu(device=device) for device in gpus),
    )


class FakeRoom:
    """The registry and the captures on fakes, driven from one thread; `turn` lets the loop and the inspector catch up."""

    def __init__(self, stack: ExitStack) -> None:
        self.loop = asyncio.new_event_loop()
        stack.callback(self.loop.close)
        self.clock = ManualClock()
        self.reader = FakeReader()
        self.processes = FakeProcesses()
        stack.callback(self.processes.close)
        self.watches: list[FakeWatch] = []
        self.desk = self.make_desk()
        stack.callback(self.desk.close)

    def make_desk(self) -> CaptureDesk:
        return CaptureDesk(self.loop, self.clock, self.reader, self.make_watch, self.processes)

    def make_watch(self, loop: asyncio.AbstractEventLoop, report: Callable[[str, Observation], None]) -> FakeWatch:
        self.watches.append(FakeWatch(report))
        return self.watches[-1]

    @property
    def watch(self) -> FakeWatch:
        return self.watches[-1]

    def settle(self) -> None:
        """Return when every look at a process has come back."""
        registry = self.desk.registry
        unread = {trainer.serial for trainer in registry if not trainer.inspected}
        self.loop.run_until_complete(registry.inspector.wait(unread, 5))

    def sender(self, pid: int, socket: int = 0, namespace: int = 0) -> Sender:
        return Sender(b"\0client%d.%d\0" % (pid, socket), namespace)

    def poll(
        self,
        pid: int,
        *claimed: int,
        mask: int = 3,
        job: int = 0,
        uid: int = 0,
        socket: int = 0,
        host_pid: int | None = None,
    ) -> str | None:
        """A poll of the process `pid` here (`host_pid=0`: unverified) that calls itself `claimed`."""
        peer = Peer(pid if host_pid is None else host_pid, uid, uid)
        return self.desk.on_request(peer, self.sender(pid, socket), ConfigRequest(mask, job, claimed or (pid,)))

    def register(self, pid: int, gpu: int, job: int = 0) -> int:
        return self.desk.on_context(Peer(pid, 0, 0), self.sender(pid), ContextMessage(gpu, pid, job))

    def lose_reply(self, pid: int, uid: int = 0) -> None:
        self.desk.on_reply_failed(Peer(pid, uid, uid), self.sender(pid), "")

    def end(self, pid: int) -> None:
        """The process ends and the kernel says so."""
        self.processes.end(pid)
        self.desk.registry.collect_deaths()

    def fall_silent(self) -> None:
        """60 s pass without a poll."""
        self.clock.pass_s(SILENT_S + 1)
        self.desk.registry.sweep()


class FakeService(FakeRoom):
    """The same room behind a TraceService; `refusals` are what the check of destinations answers, by host pid."""

    sampler: HostSampler | None = None

    def __init__(self, stack: ExitStack) -> None:
        self.refusals: dict[int, str] = {}
        self.destinations: list[Destination] = []
        self.meanwhile: Callable[[], object] = lambda: None
        super().__init__(stack)

    def make_desk(self) -> CaptureDesk:
        self.service = TraceService(
            self.loop,
            clock=self.clock,
            reader=self.reader,
            check_destinations=self.check,
            make_watch=self.make_watch,
            ipc_enabled=True,
            processes=self.processes,
            sampler=self.sampler,
        )
        return self.service.desk

    async def check(self, destinations: list[Destination], *, make_missing: bool) -> list[str]:
        self.destinations = destinations
        self.make_missing = make_missing
        self.meanwhile()
        return [self.refusals.get(destination.host_pid, "") for destination in destinations]

    def ask(self, caller: Caller = ROOT, config: str = CONFIG, **fields: Any) -> TraceOutcome:
        """A trace request, answered."""
        request = TraceRequest(config=config, **fields)
        return self.loop.run_until_complete(self.service.request_traces(request, caller))

    def trainer(self, found: ProcessFacts, *claimed: int, **poll: Any) -> None:
        """A process with these facts polls, and has been looked at."""
        self.reader.processes[found.stat.pid] = found
        self.poll(found.stat.pid, *claimed, **poll)
        self.settle()

    def reasons(self, outcome: TraceOutcome) -> dict[int, str]:
        """Why which host pid was not traced."""
        return {entry.host_pid: entry.code for entry in outcome.not_traced}
