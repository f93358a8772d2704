"""The drawn view: what it shows, that it shows no escape sequence of a trainer's, and how far a bar goes."""

import io

import pytest
from rich.console import Console

from dynolog.cli.gputrace.live_view import LiveView, draw, fraction
from dynolog.model.capture import CaptureInfo, CaptureState, TraceFile, Transition
from dynolog.model.trace_request import RequestProgress
from fakes.services import capture

S = 1_000_000_000


def recording(pid: int, **changes: object) -> CaptureInfo:
    history = (Transition(CaptureState.PENDING, 0, "asked"), Transition(CaptureState.RECORDING, 2 * S, "it records"))
    return capture(pid, state=CaptureState.RECORDING, history=history, expected_s=12.0, **changes)


def shown(captures: list[CaptureInfo], max_lines: int = 20, columns: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=columns)
    console.print(draw(captures, 6 * S, max_lines, columns))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_line_for_each_process_and_the_sum() -> None:
    failed = capture(3, state=CaptureState.FAILED, reason="it \x1b[31mdied")
    first, second, third, total = shown(
        [failed, recording(1, rank=0), recording(2, rank=1, file_bytes_so_far=2_000_000)]
    )
    assert first.startswith("pid 1, rank 0  recording  6.0 s  ━")
    assert first.endswith("about 6.0 s more")
    assert second.endswith("writing, 2.0 MB so far")
    assert third.startswith("pid 3          failed")
    assert third.endswith(r"it \x1b[31mdied")
    assert total == "3 processes: 2 recording, 1 failed"


@pytest.mark.parametrize("columns", [40, 60, 79, 80])
def test_a_process_has_one_line_however_narrow_the_terminal_is(columns: int) -> None:
    lines = shown([recording(41234, rank=10), recording(41235, rank=11)], columns=columns)
    assert [line.split("  ")[0] for line in lines] == [
        "pid 41234, rank 10",
        "pid 41235, rank 11",
        "2 processes: 2 recording",
    ]
    assert all("recording" in line for line in lines)
    assert ("━" in lines[0]) == (columns == 80)


def test_more_processes_than_lines() -> None:
    done = [
        capture(pid, state=CaptureState.WRITTEN, file=TraceFile(size_bytes=1, sha256="", events=1))
        for pid in range(10, 60)
    ]
    lines = shown([*done, recording(1)], max_lines=3)
    assert len(lines) == 4
    assert lines[0].startswith("pid 1 ")
    assert lines[3] == "51 processes: 50 written, 1 recording"


def test_a_bar_is_full_only_at_the_end() -> None:
    assert fraction(recording(1), 6.0) == 0.5
    assert fraction(recording(1), 500.0) == 0.97
    assert fraction(recording(1), None) == 0.0
    assert fraction(capture(1, state=CaptureState.EXPIRED), None) == 1.0


def test_nothing_is_left_on_the_screen_but_what_follows() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    view = LiveView(0, console)
    view.show(RequestProgress(request_id="r1", version=0, done=False, captures=(recording(1),)))
    view.close()
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "recording" in text
    assert "\x1b[2K" in text  # the lines are erased
