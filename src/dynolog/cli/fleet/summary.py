"""How the traces of many hosts ended, in a table and in words."""

from collections import Counter
from collections.abc import Iterator, Sequence

from dynolog.cli.fleet.by_reason import lines_by_reason
from dynolog.cli.fleet.plan_report import MOST_HOSTS, offset_of
from dynolog.cli.gputrace.captures_report import who
from dynolog.cli.quantities import count, microseconds, processes, size
from dynolog.cli.table import table, terminal_columns
from dynolog.fleet.manifest import HostEntry, Manifest, ProcessEntry
from dynolog.fleet.trigger import processes_by_host

_MOST_PROCESSES = 24
# Ranks that begin at the same iteration were seen 11 ms apart, those that did not some iterations: 336 ms.
_TOGETHER_NS = 100_000_000
STATES = (
    "planned",
    "asked",
    "pending",
    "delivered",
    "recording",
    "written",
    "empty",
    "failed",
    "expired",
    "not_traced",
    "unknown",
)


def word_of(process: ProcessEntry) -> str:
    """Its outcome; `empty` for a file with nothing in it."""
    return "empty" if process.outcome == "written" and not process.is_good else process.outcome


def counts(found: Sequence[ProcessEntry]) -> Counter[str]:
    """How many have which outcome."""
    return Counter(map(word_of, found))


def words_for(found: Sequence[ProcessEntry]) -> str:
    """`2 written, 1 failed`."""
    numbers = counts(found)
    return ", ".join(f"{numbers[word]:,} {word.replace('_', ' ')}" for word in STATES if numbers[word]) or "-"


def summary_lines(manifest: Manifest) -> Iterator[str]:
    """A line a host (of very many only those with trouble), each process that has no good file, and the sum."""
    by_host = processes_by_host(manifest)
    rows = [_row(host, by_host.get(host.label, [])) for host in manifest.hosts]
    yield ""
    if len(rows) <= MOST_HOSTS:
        header = ("HOST", "PROCESSES", "SIZE", "CLOCK", "REMARK")
        yield from table(header, rows, right=(2, 3), columns=terminal_columns()).splitlines()
    else:
        yield from lines_by_reason((row[0], row[-1]) for row in rows if row[-1])
    originals = {host.label for host in manifest.hosts if host.original}
    bad = [one for one in manifest.processes if one.host not in originals and _is_worth_a_line(one)]
    if len(bad) <= _MOST_PROCESSES:
        for process in bad:
            yield f"{process.host}, {who(process.pid, process.host_pid, process.rank)}: {_why(process)}"
    else:
        yield f"{processes(len(bad))} in trouble (the manifest names each):"
        for line in lines_by_reason((process.host, _why(process, with_path=False)) for process in bad):
            yield f"    {line}"
    if originals:
        yield f"{count(len(originals), 'host')} with the original C++ dynolog, which cannot tell what becomes of a trace"
    yield from _alignment(manifest)
    hosts = count(len(manifest.hosts), "host")
    fetched = sum(bool(process.fetched) for process in manifest.processes)
    brought = f", {fetched:,} fetched" if fetched else ""
    yield f"{processes(len(manifest.processes))} on {hosts}: {words_for(manifest.processes)}{brought}"


def _alignment(manifest: Manifest) -> Iterator[str]:
    """Whether recording began everywhere at once, as the traces themselves tell."""
    hosts = {host.label: host for host in manifest.hosts}
    begins = [
        (process.begin_wall_ns - _correction_ns(hosts[process.host]), process)
        for process in manifest.processes
        if process.begin_wall_ns
    ]
    begins.sort(key=lambda pair: pair[0])
    if len(begins) < 2:
        return
    apart_ns = begins[-1][0] - begins[0][0]
    if apart_ns <= _TOGETHER_NS:
        yield f"Recording began within {microseconds(apart_ns / 1000)} on all"
        return
    first, last = begins[0][1], begins[-1][1]
    yield f"warning: recording began {microseconds(apart_ns / 1000)} apart: first on {_name(first)}, last on {_name(last)}"


def _correction_ns(host: HostEntry) -> int:
    offset = offset_of(host)
    return offset.correction_ns if offset else 0


def _name(process: ProcessEntry) -> str:
    return f"{process.host} (pid {process.pid})" if process.rank is None else f"{process.host} (rank {process.rank})"


def _is_worth_a_line(process: ProcessEntry) -> bool:
    return (process.is_final and not process.is_good) or bool(process.fetch_error or process.warnings)


def _row(host: HostEntry, found: Sequence[ProcessEntry]) -> tuple[str, ...]:
    bytes_written = sum(process.size_bytes for process in found)
    clock = "-" if host.clock_offset_ns is None else f"{host.clock_offset_ns / 1e6:+.1f} ms"
    remark = f"{host.outcome}: {host.error}" if host.outcome != "answered" else host.error
    if not remark and not found:
        remark = host.notes[-1] if host.notes else "nothing to trace"
    return host.label, words_for(found), size(bytes_written) if bytes_written else "-", clock, remark


def _why(process: ProcessEntry, *, with_path: bool = True) -> str:
    path = process.path if with_path else "its file"
    if process.fetch_error:
        return f"{path} was not fetched: {process.fetch_error}"
    if process.is_good:
        return f"{path}: warning: {'; '.join(process.warnings)}"
    where = f" ({process.path})" if process.path and with_path else ""
    return f"{word_of(process).replace('_', ' ')}: {process.reason or 'nothing was recorded'}{where}"
