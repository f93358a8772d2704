"""CPU times, context switches, interrupts and processes since boot (`/proc/stat`, proc_stat(5))."""

import operator
import threading
import time

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, unavailable

# Order of the columns; the last two arrived in 2.6.24 and 2.6.33 and are already inside user and nice.
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
COLUMNS = len(FIELDS)
CpuTimes = tuple[int, ...]
SOFTIRQ_CLASSES = ("hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu")
_LONGEST_U64 = 20


class ProcStat(msgspec.Struct, frozen=True):
    """One reading. `total` is in ticks of 1/SC_CLK_TCK s, ten columns (columns that an old kernel lacks are 0).

    `cpu_lines` are the lines of the single CPUs as they came, each after a newline: `parse_cpus` makes numbers of them for those
    who need them. Counters are None when the line is missing; `softirqs` is the total and one count for each class.
    """

    total: CpuTimes
    cpu_lines: bytes = b""
    context_switches: int | None = None
    interrupts: int | None = None
    forks: int | None = None
    procs_running: int | None = None
    procs_blocked: int | None = None
    boot_time_s: int | None = None
    softirqs: tuple[int, ...] = ()

    @property
    def cpu_count(self) -> int:
        """CPUs that are online."""
        return self.cpu_lines.count(b"\ncpu")


class CpuTable(msgspec.Struct, frozen=True):
    """Times of single CPUs: `ids` may have holes (a CPU that is offline has no line), `ticks` has ten columns for each id."""

    ids: list[int]
    ticks: list[int]


NO_CPUS = CpuTable([], [])


def parse(data: bytes) -> ProcStat:
    """Parse the file; a line that does not parse is left out. Raises ValueError when there is no total line."""
    start = 0 if data.startswith(b"cpu ") else data.find(b"\ncpu ") + 1
    end = _line_end(data, start)
    total = _times(data[start:end].split()[1:]) if data.startswith(b"cpu ", start) else None
    if total is None:
        raise ValueError("no line that starts with 'cpu '")
    last_cpu = data.rfind(b"\ncpu", end)
    rest = end if last_cpu < 0 else _line_end(data, last_cpu + 1)
    return ProcStat(
        total,
        data[end:rest],
        _counter(data, b"\nctxt ", rest),
        _counter(data, b"\nintr ", rest),
        _counter(data, b"\nprocesses ", rest),
        _counter(data, b"\nprocs_running ", rest),
        _counter(data, b"\nprocs_blocked ", rest),
        _counter(data, b"\nbtime ", rest),
        _softirqs(data, rest),
    )


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _times(columns: list[bytes]) -> CpuTimes | None:
    try:
        times = tuple(map(int, columns[:COLUMNS]))
    except ValueError:
        return None
    return times + (0,) * (COLUMNS - len(times)) if len(times) >= 4 else None


def _counter(data: bytes, name: bytes, start: int) -> int | None:
    """The first number of a line: `intr` goes on with a column for each of up to thousands of interrupts."""
    at = data.find(name, start)
    if at < 0:
        return None
    at += len(name)
    digits = data[at : at + _LONGEST_U64 + 1].split(b"\n", 1)[0].split(b" ", 1)[0]
    return int(digits) if digits.isdigit() and len(digits) <= _LONGEST_U64 else None


def _softirqs(data: bytes, start: int) -> tuple[int, ...]:
    at = data.find(b"\nsoftirq ", start)
    if at < 0:
        return ()
    try:
        return tuple(map(int, data[at + 9 : _line_end(data, at + 9)].split()))
    except ValueError:
        return ()


_INTEGERS = msgspec.json.Decoder(list[int])


def parse_cpus(lines: bytes) -> CpuTable:
    """The lines of single CPUs as numbers; a line that does not parse is left out. Never raises."""
    # With commas the lines are a JSON list of integers, and its decoder is eight times as fast as split and int.
    try:
        ticks = _INTEGERS.decode(b"[" + lines.replace(b"\ncpu", b",").replace(b" ", b",")[1:] + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _parse_cpus_line_by_line(lines)
    ids = ticks[:: COLUMNS + 1]
    if len(ticks) != lines.count(b"\n") * (COLUMNS + 1) or not all(map(operator.lt, ids, ids[1:])):
        return _parse_cpus_line_by_line(lines)
    del ticks[:: COLUMNS + 1]
    return CpuTable(ids, ticks)


def _parse_cpus_line_by_line(lines: bytes) -> CpuTable:
    cpus: dict[int, CpuTimes] = {}
    for line in lines.split(b"\n"):
        name, *columns = line.split() or [b""]
        if name.startswith(b"cpu") and name[3:].isdigit() and len(name) < 12 and (times := _times(columns)):
            cpus[int(name[3:])] = times
    return CpuTable(list(cpus), [ticks for times in cpus.values() for ticks in times])


class _Readings:
    """The readings of one host, each shared by the readers that come for it within `SHARED_NS`."""

    SHARED_NS = 10_000_000

    def __init__(self, host: HostFiles) -> None:
        self._file = host.file("proc/stat")
        self._lock = threading.Lock()
        self._latest: ProcStat | None = None
        self._number = 0
        self._read_ns = 0

    def newer_than(self, seen: int) -> tuple[int, ProcStat]:
        """A reading that the caller has not had, with its number: the latest one while it is fresh, else a new one."""
        with self._lock:
            now_ns = time.monotonic_ns()
            if self._latest is None or self._number <= seen or now_ns - self._read_ns > self.SHARED_NS:
                self._latest = parse(self._file.read())
                self._read_ns = now_ns
                self._number += 1
            return self._number, self._latest


class ProcStatReader:
    """Reads `/proc/stat` again and again. Raises SourceUnavailable when it cannot.

    On hundreds of CPUs this file is dear, so readers of one host share a reading within a round; none gets the same one twice.
    """

    def __init__(self, host: HostFiles) -> None:
        self._readings = host.shared(_Readings)
        self._seen = 0

    def read(self) -> ProcStat:
        """One reading, at most 10 ms old."""
        try:
            self._seen, stat = self._readings.newer_than(self._seen)
        except OSError as error:
            raise unavailable("/proc/stat", error) from error
        except ValueError as error:
            raise SourceUnavailable("/proc/stat", str(error)) from error
        return stat
