"""What is shown of many hosts: the drawn table, lines without a terminal, and the summary."""

import io
import sys

import pytest
from rich.console import Console

from dynolog.cli.fleet.live_view import LiveGroupView, draw
from dynolog.cli.fleet.summary import summary_lines
from dynolog.cli.fleet.trace_view import LinesView, NoView, choose_view
from dynolog.fleet.manifest import HostEntry, Manifest, ProcessEntry
from dynolog.profiling.trace_check import check
from fakes.traces import RECORDED

S = 1_000_000_000


def process(host: str, pid: int, outcome: str, **changes: object) -> ProcessEntry:
    facts: dict[str, object] = {"host": host, "pid": pid, "host_pid": pid, "rank": pid, "outcome": outcome}
    if outcome == "written":
        facts |= {"events": 5, "size_bytes": 1000, "path": f"/t/{pid}.json"}
    return ProcessEntry(**(facts | changes))  # type: ignore[arg-type] # fields are checked by the tests that use them


def group(*processes: ProcessEntry, **hosts: HostEntry) -> Manifest:
    labels = dict.fromkeys(one.host for one in processes)
    entries = {label: HostEntry(host=label, label=label) for label in labels} | hosts
    return Manifest(group_id="g", hosts=list(entries.values()), processes=list(processes))


def shown(manifest: Manifest, max_lines: int = 20, columns: int = 120) -> list[str]:
    console = Console(file=io.StringIO(), width=columns)
    console.print(draw(manifest, 6 * S, max_lines, columns))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_slowest_host_stands_first_with_its_states_and_the_time_to_go_below() -> None:
    recording = process("b", 2, "recording", times={"pending": 0 + 1 * S}, expected_s=10.0)
    lines = shown(group(process("a", 1, "written"), recording, process("b", 3, "failed", reason="x")))
    assert lines[0].split() == ["HOST", "WAITING", "DELIVERED", "RECORDING", "WRITTEN", "FAILED", "REMARK"]
    assert lines[1].split()[:6] == ["b", "·", "·", "1", "·", "1"]
    assert lines[2].split()[:6] == ["a", "·", "·", "·", "1", "·"]
    assert lines[-1].endswith("  1 recording, 1 written, 1 failed, about 5.0 s more")


@pytest.mark.parametrize("columns", [70, 89, 90])
def test_a_host_has_one_line_however_narrow_the_terminal_is(columns: int) -> None:
    facts = {"times": {"pending": 1 * S}, "expected_s": 10.0}
    hosts = [process(f"gpu-node-000{n}", n, "recording", **facts) for n in (1, 2)]
    lines = shown(group(*hosts), columns=columns)
    assert [line.split()[0] for line in lines[:3]] == ["HOST", "gpu-node-0001", "gpu-node-0002"]
    assert ("━" in lines[1]) == (columns == 90)
    assert lines[3].endswith("2 recording, about 5.0 s more")
    assert len(lines) == 4


def test_times_are_by_the_clock_of_the_host() -> None:
    """Its clock is 2 s ahead, so what began at its 3 s began at our 1 s."""
    recording = process("b", 2, "recording", times={"pending": 3 * S}, expected_s=10.0)
    lines = shown(group(recording, b=HostEntry(host="b", label="b", clock_offset_ns=2 * S)))
    assert lines[-1].endswith("about 5.0 s more")


def test_more_hosts_than_lines() -> None:
    lines = shown(group(*(process(f"h{index}", index, "pending") for index in range(50))), max_lines=5)
    assert len(lines) == 7
    assert lines[-1].endswith("  50 pending, 45 more hosts")


def test_names_of_hosts_do_not_steer_the_terminal() -> None:
    assert r"\x1b[2J" in "".join(shown(group(process("\x1b[2J", 1, "pending"))))


def test_the_table_goes_when_it_is_over() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    view = LiveGroupView(group(process("a", 1, "pending")), console)
    view.show()
    view.close()
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[2K" in console.file.getvalue()


def test_a_line_for_each_change_of_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = group(process("a", 1, "pending"))
    view = LinesView(manifest)
    view.show()
    view.show()
    manifest.processes[0].outcome, manifest.processes[0].reason = "failed", "no\nspace"
    view.show()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  a, ")[2] for line in lines] == [
        "pid 1, rank 1: pending",
        r"pid 1, rank 1: failed: no\nspace",
    ]


def test_very_many_processes_are_summed(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = group(*(process(f"h{index}", index, "written" if index % 2 else "pending") for index in range(100)))
    view = LinesView(manifest)
    view.show()
    view.show()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("50 pending, 50 written; 50 of 100 hosts done")


def test_the_view_fits_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = group()
    assert isinstance(choose_view(manifest, as_json=True), NoView)
    assert isinstance(choose_view(manifest, as_json=False), LinesView)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "dynolog.cli.fleet.live_view", None)
    assert isinstance(choose_view(manifest, as_json=False), LinesView)


def test_the_summary_has_a_line_for_each_process_without_a_good_file() -> None:
    manifest = group(
        process("a", 1, "written"),
        process("a", 2, "written", events=0),
        process("b", 3, "failed", reason="the disk is full", path="/t/3.json"),
        process("b", 4, "written", fetch_error="it broke"),
        down=HostEntry(host="down", label="down", outcome="unreachable", error="no connection"),
    )
    lines = list(summary_lines(manifest))
    text = "\n".join(lines)
    assert "down  -" in text
    assert "unreachable: no connection" in text
    assert "a, pid 2, rank 2: empty: nothing was recorded (/t/2.json)" in lines
    assert "b, pid 3, rank 3: failed: the disk is full (/t/3.json)" in lines
    assert "b, pid 4, rank 4: /t/4.json was not fetched: it broke" in lines
    assert lines[-1] == "4 processes on 3 hosts: 2 written, 1 empty, 1 failed"


def test_of_very_many_hosts_only_those_in_trouble_are_listed() -> None:
    gone = HostEntry(host="x", label="x", outcome="silent", error="no answer")
    lines = list(summary_lines(group(*(process(f"h{index}", index, "written") for index in range(200)), x=gone)))
    assert [line for line in lines if line] == [
        "x: silent: no answer",
        "200 processes on 201 hosts: 200 written",
    ]


def test_processes_of_many_hosts_that_failed_alike_share_a_line() -> None:
    bad = [process(f"h{index:03}", index, "failed", reason=f"the disk /data{index} is full") for index in range(50)]
    bad += [process("h060", 60, "written", fetch_error="it broke")]
    lines = [line for line in summary_lines(group(*bad, *(process(f"w{i}", i, "written") for i in range(99)))) if line]
    assert lines == [
        "51 processes in trouble (the manifest names each):",
        "    h[000-049]: failed: the disk /data0 is full (so h000; the numbers of the others differ)",
        "    h060: its file was not fetched: it broke",
        "150 processes on 150 hosts: 100 written, 50 failed",
    ]


def test_whether_the_traces_began_together_is_told_by_them_and_the_clocks() -> None:
    """Rank 2's host is 2 s ahead, so what it calls 102.05 s was 100.05 s here."""
    first = process("a", 1, "written", begin_wall_ns=100 * S)
    second = process("b", 2, "written", begin_wall_ns=102 * S + S // 20)
    off = HostEntry(host="b", label="b", clock_offset_ns=2 * S, clock_uncertainty_ns=1000)
    assert "Recording began within 50.0 ms on all" in list(summary_lines(group(first, second, b=off)))
    second.begin_wall_ns += S
    (line,) = [line for line in summary_lines(group(first, second, b=off)) if line.startswith("warning")]
    assert line == "warning: recording began 1.05 s apart: first on a (rank 1), last on b (rank 2)"
    assert not [line for line in summary_lines(group(first)) if "began" in line]


def test_recorded_ranks_that_rounded_up_to_two_iterations_are_found() -> None:
    """Three of the four workers began at iteration 700, the last at 710."""
    ranks = []
    for rank, pid in enumerate((13260, 13261, 13262, 13263)):
        with open(RECORDED / f"iter_{pid}.json.gz", "rb") as file:
            ranks.append(process("a", rank, "written", begin_wall_ns=check(file.read).begin_wall_ns))
    (line,) = [line for line in summary_lines(group(*ranks)) if line.startswith("warning")]
    assert line == "warning: recording began 336.5 ms apart: first on a (rank 2), last on a (rank 3)"
    assert "Recording began within 11.1 ms on all" in list(summary_lines(group(*ranks[:3])))
