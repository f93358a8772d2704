"""CPU times, context switches, interrupts and processes since boot (`/proc/stat`, proc_stat(5))."""

import msgspec

from dynolog.sources.host_files import HostFiles, unavailable

# Order of the columns; the last two arrived in 2.6.24 and 2.6.33 and are already inside user and nice.
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
CpuTimes = tuple[int, ...]
SOFTIRQ_CLASSES = ("hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu")


class ProcStat(msgspec.Struct, frozen=True):
    """One reading. CPU times are ticks of 1/SC_CLK_TCK s, ten columns each (columns that an old kernel lacks are 0).

    `cpus` is keyed by CPU id, which may have holes; a CPU that is offline has no line. Counters are None when the line is missing.
    """

    total: CpuTimes
    cpus: dict[int, CpuTimes]
    context_switches: int | None = None
    interrupts: int | None = None
    forks: int | None = None
    procs_running: int | None = None
    procs_blocked: int | None = None
    boot_time_s: int | None = None
    softirqs: tuple[int, ...] = ()


def parse(data: bytes) -> ProcStat:
    """Parse the file; a line that does not parse is left out. Raises ValueError when there is no total line."""
    total: CpuTimes | None = None
    cpus: dict[int, CpuTimes] = {}
    single: dict[bytes, int] = {}
    softirqs: tuple[int, ...] = ()
    for line in data.split(b"\n"):
        try:
            if line.startswith(b"cpu"):
                name, *columns = line.split()
                times = tuple(map(int, columns[:10]))
                if len(times) < 4:
                    continue
                times += (0,) * (10 - len(times))
                if name == b"cpu":
                    total = times
                else:
                    cpus[int(name[3:])] = times
            elif line.startswith(b"softirq"):
                softirqs = tuple(map(int, line.split()[1:]))
            elif line.startswith(_SINGLE):
                # `intr` is followed by one column for each of up to thousands of interrupts: only the total is taken.
                name, value = line.split(None, 2)[:2]
                single[name] = int(value)
        except ValueError:
            continue
    if total is None:
        raise ValueError("no line that starts with 'cpu '")
    return ProcStat(
        total,
        cpus,
        single.get(b"ctxt"),
        single.get(b"intr"),
        single.get(b"processes"),
        single.get(b"procs_running"),
        single.get(b"procs_blocked"),
        single.get(b"btime"),
        softirqs,
    )


_SINGLE = (b"ctxt", b"intr", b"processes", b"procs_", b"btime")


class ProcStatReader:
    """Reads `/proc/stat` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles) -> None:
        self._file = host.file("proc/stat")

    def read(self) -> ProcStat:
        """One reading."""
        try:
            return parse(self._file.read())
        except OSError as error:
            raise unavailable("/proc/stat", error) from error
