"""/proc/stat: what is parsed, what is left out, and how a reading is shared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import proc_stat
from dynolog.sources.host_files import HostFiles
from dynolog.sources.proc_stat import CpuTable, ProcStat, ProcStatReader, parse, parse_cpus
from fakes.collector_context import HostTree

FILE = b"""cpu  10 20 30 40 50 60 70 80 90 100
cpu0 1 2 3 4 5 6 7 8 9 10
cpu8 11 12 13 14 15 16 17 18 19 20
intr 987654321 0 0 12 0 5
ctxt 123456
btime 1700000000
processes 4242
procs_running 3
procs_blocked 1
softirq 55 1 2 3 4 5 6 7 8 9 10
"""


def test_every_field_is_found() -> None:
    stat = parse(FILE)
    assert stat.total == (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    assert stat.cpu_count == 2
    assert parse_cpus(stat.cpu_lines) == CpuTable([0, 8], [*range(1, 11), *range(11, 21)])
    assert (stat.interrupts, stat.context_switches, stat.boot_time_s) == (987654321, 123456, 1700000000)
    assert (stat.forks, stat.procs_running, stat.procs_blocked) == (4242, 3, 1)
    assert stat.softirqs == (55, *range(1, 11))


def test_old_kernels_have_fewer_columns_and_lines() -> None:
    stat = parse(b"cpu 1 2 3 4\ncpu0 1 2 3 4\n")
    assert stat.total == (1, 2, 3, 4, 0, 0, 0, 0, 0, 0)
    assert parse_cpus(stat.cpu_lines) == CpuTable([0], [1, 2, 3, 4, 0, 0, 0, 0, 0, 0])
    assert stat.interrupts is None
    assert stat.softirqs == ()


@pytest.mark.parametrize(
    "line",
    [b"cpu1 1 2 x 4 5 6 7 8 9 10", b"cpu1 1 2", b"cpuX 1 2 3 4 5 6 7 8 9 10", b"cpu1", b"cpu-1 1 2 3 4 5 6 7 8 9 10"],
)
def test_a_malformed_cpu_line_costs_only_itself(line: bytes) -> None:
    good = b"cpu0 1 2 3 4 5 6 7 8 9 10"
    stat = parse(b"cpu  1 2 3 4\n" + good + b"\n" + line + b"\ncpu2" + good[4:] + b"\nctxt 7\n")
    table = parse_cpus(stat.cpu_lines)
    assert table == CpuTable([0, 2], [*range(1, 11), *range(1, 11)])
    assert stat.context_switches == 7


@pytest.mark.parametrize(
    "line", [b"ctxt", b"ctxt ", b"ctxt x", b"ctxt -5", b"ctxt \n5", b"ctxt 123456789012345678901234"]
)
def test_a_malformed_counter_is_missing_and_not_zero(line: bytes) -> None:
    stat = parse(b"cpu  1 2 3 4\n" + line + b"\nprocesses 9\n")
    assert stat.context_switches is None
    assert stat.forks == 9


def test_lines_after_the_last_are_not_needed() -> None:
    """A file that is cut within its last line."""
    assert parse(b"cpu  1 2 3 4\nctxt 12").context_switches == 12


@pytest.mark.parametrize("data", [b"", b"cpu0 1 2 3 4\n", b"cpu  1 2\n", b"cpu  a b c d\n", b"intr 5\n"])
def test_no_total_line_is_an_error_with_a_reason(data: bytes, host_tree: HostTree) -> None:
    host_tree.write("proc/stat", data)
    with pytest.raises(SourceUnavailable, match="/proc/stat: no line"):
        ProcStatReader(HostFiles(str(host_tree.root))).read()


def test_a_missing_file_is_an_error_with_a_remedy(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="not there"):
        ProcStatReader(HostFiles(str(host_tree.root))).read()


def test_two_readers_share_a_reading_and_none_gets_it_twice(
    host_tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []

    def count(data: bytes) -> ProcStat:
        parsed.append(data)
        return parse(data)

    monkeypatch.setattr(proc_stat, "parse", count)
    monkeypatch.setattr("dynolog.sources.proc_stat.time.monotonic_ns", lambda: 0)
    host_tree.write("proc/stat", FILE)
    host = HostFiles(str(host_tree.root))
    first, second = ProcStatReader(host), ProcStatReader(host)
    assert first.read() is second.read()
    assert len(parsed) == 1
    assert second.read() is not None
    assert first.read() is not None
    assert len(parsed) == 2


def test_a_reading_that_is_not_fresh_is_not_shared(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = [0]
    monkeypatch.setattr("dynolog.sources.proc_stat.time.monotonic_ns", lambda: now_ns[0])
    host_tree.write("proc/stat", FILE)
    host = HostFiles(str(host_tree.root))
    first, second = ProcStatReader(host), ProcStatReader(host)
    first.read()
    now_ns[0] = 11_000_000
    host_tree.write("proc/stat", FILE.replace(b"ctxt 123456", b"ctxt 123457"))
    assert second.read().context_switches == 123457


@given(
    st.binary(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                b"cpu  1 2 3 4\n",
                b"cpu0 1 2 3 4 5 6 7 8 9 10\n",
                b"cpu",
                b" ",
                b"\n",
                b"9",
                b"x",
                b"intr 5",
                b"softirq 1 x",
            ]
        )
    ).map(b"".join)
)
def test_any_bytes_parse_or_raise_valueerror(data: bytes) -> None:
    try:
        stat = parse(data)
    except ValueError:
        return
    table = parse_cpus(stat.cpu_lines)
    assert len(table.ticks) == 10 * len(table.ids)


@given(st.binary(max_size=200))
def test_any_bytes_make_a_table(data: bytes) -> None:
    table = parse_cpus(data)
    assert len(table.ticks) == 10 * len(table.ids)


@given(
    st.dictionaries(
        st.integers(0, 4096),
        st.lists(st.integers(0, 2**64 - 1), min_size=10, max_size=10),
        max_size=20,
    )
)
def test_what_is_written_is_read_back(cpus: dict[int, list[int]]) -> None:
    rows = sorted(cpus.items())
    lines = b"".join(f"\ncpu{cpu} {' '.join(map(str, row))}".encode() for cpu, row in rows)
    assert parse_cpus(lines) == CpuTable([cpu for cpu, _ in rows], [tick for _, row in rows for tick in row])
