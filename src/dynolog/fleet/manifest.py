"""What is known of a trace of many hosts, and the file that says so at every moment."""

import time
from collections.abc import Callable

import msgspec

from dynolog.fleet.targets import DEFAULT_PORT, FleetTarget, HostsError
from dynolog.fleet.whole_file import written_whole
from dynolog.model.capture import CaptureInfo, CaptureState
from dynolog.model.json_text import encode_json

FORMAT = "dyno-group-trace-1"
# Outcomes of a process beyond the states of captures.
PLANNED = "planned"  # it would be traced; not asked yet
ASKED = "asked"  # the request was sent; its daemon has not acknowledged it
NOT_TRACED = "not_traced"  # its daemon left it out, or nothing was started
UNKNOWN = "unknown"  # its daemon was lost, or cannot tell: the file may be there
_FINAL = frozenset({"written", "failed", "expired", NOT_TRACED, UNKNOWN})


class HostEntry(msgspec.Struct, kw_only=True):
    """One host. Changes as more becomes known.

    `outcome` is that of the last call (`answered`, `refused`, `unreachable`, `silent`, `no_answer`, `not_understood`), or `lost` when its
    daemon went away while it was followed. The clock offset is the host's minus ours in ns; None: it told no time.
    """

    host: str
    port: int = DEFAULT_PORT
    label: str = ""
    outcome: str = "answered"
    error: str = ""
    original: bool = False
    request_id: str = ""
    clock_offset_ns: int | None = None
    clock_uncertainty_ns: int | None = None
    start_wall_ns: int = 0
    slowest_poll_s: float = 0.0
    matched: int = 0
    triggered: int = 0
    notes: list[str] = []

    @property
    def target(self) -> FleetTarget:
        """Where its daemon is."""
        return FleetTarget(host=self.host, port=self.port, label=self.label)


class ProcessEntry(msgspec.Struct, kw_only=True):
    """One process: who it is, and what became of its trace.

    `pid` is what it calls itself, `host_pid` the host's (0: unverified). `gpus` are those that it held when it was asked for (`0`,
    `0/gi1`). `times` has when each state was reached, in Unix ns by the clock of its host. `sha256` and `size_bytes` are of the file
    as it was written; the fetched ones differ when `distributedInfo` or `host_tracks` counter tracks of its host were added
    (`host_note`: why none). `begin_wall_ns` is the begin of the first event, by the clock of its host.
    """

    host: str
    pid: int
    host_pid: int
    job: str = ""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    name: str = ""
    gpus: list[str] = []
    outcome: str = PLANNED
    reason: str = ""
    log_file: str = ""
    path: str = ""
    host_path: str = ""
    capture_id: str = ""
    times: dict[str, int] = {}
    expected_s: float = 0.0
    bytes_so_far: int = 0
    size_bytes: int = 0
    sha256: str = ""
    events: int = 0
    duration_us: float = 0.0
    begin_wall_ns: int = 0
    memory_snapshot: bool = False
    warnings: list[str] = []
    fetched: str = ""
    fetched_size_bytes: int = 0
    fetched_sha256: str = ""
    distributed_info_added: bool = False
    host_tracks: int = 0
    host_note: str = ""
    fetch_error: str = ""

    @property
    def is_final(self) -> bool:
        """Whether nothing more will become known by following."""
        return self.outcome in _FINAL

    @property
    def is_good(self) -> bool:
        """Whether there is a checked file with something in it."""
        return self.outcome == "written" and not self.reason and (self.events > 0 or self.memory_snapshot)

    def update(self, capture: CaptureInfo) -> None:
        """What its daemon says now."""
        self.outcome, self.reason = str(capture.state), capture.reason
        self.capture_id, self.path, self.host_path = capture.id, capture.path, capture.host_path
        self.expected_s, self.bytes_so_far = capture.expected_s, capture.file_bytes_so_far
        self.times = {str(step.state): step.wall_ns for step in capture.history}
        if capture.rank is not None:
            self.rank = capture.rank
        if (file := capture.file) is not None and capture.state is CaptureState.WRITTEN:
            self.size_bytes, self.sha256, self.events = file.size_bytes, file.sha256, file.events
            self.duration_us, self.memory_snapshot = file.duration_us, file.memory_snapshot
            self.begin_wall_ns = file.begin_wall_ns
            self.warnings = list(file.warnings)


class Manifest(msgspec.Struct, kw_only=True):
    """A group of captures. `state`: `asking`, `following`, `interrupted`, `done`; times in Unix ns by the clock of this machine."""

    group_id: str
    hosts: list[HostEntry]
    processes: list[ProcessEntry]
    format: str = FORMAT
    dyno_version: str = ""
    state: str = "asking"
    created_wall_ns: int = 0
    updated_wall_ns: int = 0
    start_wall_ns: int = 0
    config: str = ""
    job: str = ""
    notes: list[str] = []

    def of_host(self, label: str) -> list[ProcessEntry]:
        """The processes of one host."""
        return [process for process in self.processes if process.host == label]


class ManifestFile:
    """Keeps the file true: whole at every moment, written anew at most every `every_s`, and when it must be.

    Once traces go on, a disk that is full ends nothing: `on_trouble` is told each reason once.
    """

    def __init__(
        self, manifest: Manifest, path: str, every_s: float = 1.0, on_trouble: Callable[[str], None] | None = None
    ) -> None:
        self.manifest = manifest
        self.path = path
        self._every_s = every_s
        self._on_trouble = on_trouble
        self._troubles: set[str] = set()
        self._next_s = 0.0
        self._changed = False

    def touch(self) -> None:
        """Something changed: write it, now or at the first `settle` after a while."""
        self._changed = True
        self.settle()

    def settle(self) -> None:
        """Write what has changed, unless the file was written just now."""
        if self._changed and time.monotonic() >= self._next_s:
            self.attempt()

    def attempt(self) -> bool:
        """Write it now; False when that cannot be done, which is told."""
        try:
            self.save()
        except HostsError as error:
            self._changed = True
            self._next_s = time.monotonic() + self._every_s
            if self._on_trouble is not None and str(error) not in self._troubles:
                self._on_trouble(str(error))
            self._troubles.add(str(error))
            return False
        return True

    def save(self) -> None:
        """Write it now. Raises HostsError when that cannot be done."""
        started_s = time.monotonic()
        self._changed = False
        self.manifest.updated_wall_ns = time.time_ns()
        data = msgspec.json.format(encode_json(self.manifest), indent=1) + b"\n"
        try:
            write_whole(self.path, data)
        except OSError as error:
            raise HostsError(f"the manifest {self.path} cannot be written: {error.strerror}") from error
        # A manifest of many thousands must not keep the loop from the hosts.
        self._next_s = time.monotonic() + max(self._every_s, 20 * (time.monotonic() - started_s))


def write_whole(path: str, data: bytes) -> None:
    """Put a file in place in one step. Raises OSError."""
    with written_whole(path) as file:
        file.write(data)


def read_manifest(path: str) -> Manifest:
    """Raises HostsError for what is no manifest of ours."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        manifest = msgspec.json.decode(data, type=Manifest)
    except OSError as error:
        raise HostsError(f"the manifest {path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise HostsError(f"{path} is no manifest of dyno gputrace: {error}") from error
    if manifest.format != FORMAT:
        raise HostsError(f"{path} is a manifest of another version of dyno: {manifest.format!r}")
    return manifest
