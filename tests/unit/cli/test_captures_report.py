"""What became of captures, in words."""

from dynolog.cli.gputrace.captures_report import capture_lines, exit_code, summary
from dynolog.model.capture import CaptureState, Operation, TraceFile, Transition
from fakes.services import capture

S = 1_000_000_000
WRITTEN = TraceFile(
    size_bytes=1_234_567,
    sha256="ab",
    events=3456,
    duration_us=512_300.0,
    longest=(
        Operation("aten::mm", 12_300.0),
        Operation("step\x1b[2J", 980.0),
        Operation("c", 5.0),
        Operation("d", 1.0),
    ),
    warnings=("two events are cut",),
)
HISTORY = (
    Transition(CaptureState.PENDING, 100 * S, "asked"),
    Transition(CaptureState.RECORDING, 103 * S, "its poll lacks the activities bit"),
    Transition(CaptureState.WRITTEN, 107 * S, "the file is whole"),
)


def test_a_written_file_with_its_longest_operations() -> None:
    lines = capture_lines(capture(2869, rank=0, state=CaptureState.WRITTEN, file=WRITTEN, history=HISTORY))
    assert lines == [
        "/tmp/t_2869.json (pid 2869, rank 0): 1.2 MB, 3,456 events over 512.3 ms",
        r"    longest: aten::mm 12.3 ms, step\x1b[2J 980 µs, c 5 µs",
        "    warning: two events are cut",
    ]


def test_a_file_in_the_processs_own_mounts_is_named_as_its_host_sees_it() -> None:
    """A10: the path alone leads nowhere when the process has other mounts than the reader."""
    elsewhere = capture(
        1, host_pid=77, state=CaptureState.WRITTEN, file=WRITTEN, host_path="/proc/77/root/tmp/t_1.json"
    )
    assert [line for line in capture_lines(elsewhere) if "/proc/77/root/tmp/t_1.json (--fetch DIR" in line]
    same = capture(2869, state=CaptureState.WRITTEN, file=WRITTEN, host_path="/tmp/t_2869.json")
    assert not [line for line in capture_lines(same) if "--fetch" in line]


def test_a_failed_one_says_why_and_a_namespace_pid_is_named_with_the_hosts() -> None:
    failed = capture(1, host_pid=77, state=CaptureState.FAILED, reason="it ended while recording")
    assert capture_lines(failed) == ["/tmp/t_1.json (pid 1, host pid 77): failed: it ended while recording"]


def test_an_empty_trace_is_no_success() -> None:
    nothing = TraceFile(size_bytes=1000, sha256="ab", events=0)
    empty = capture(5, state=CaptureState.WRITTEN, file=nothing)
    assert capture_lines(empty) == ["/tmp/t_5.json (pid 5): empty: nothing was recorded (1.0 kB, 0 events)"]
    assert exit_code([empty]) == 1
    assert summary([empty]) == "1 process: 1 empty"


def test_the_sum_has_the_time_when_all_have_ended() -> None:
    written = capture(1, state=CaptureState.WRITTEN, file=WRITTEN, history=HISTORY)
    failed = capture(2, state=CaptureState.FAILED, reason="it died")
    assert summary([written, written]) == "2 processes: 2 written, in 7.0 s"
    assert summary([written, failed]) == "2 processes: 1 written, 1 failed, in 7.0 s"
    assert summary([written, capture(3)]) == "2 processes: 1 written, 1 pending"


def test_exit_codes() -> None:
    written = capture(1, state=CaptureState.WRITTEN, file=WRITTEN)
    assert exit_code([written]) == 0
    assert exit_code([written, capture(2)]) == 0
    assert exit_code([written, capture(3, state=CaptureState.EXPIRED)]) == 1
    assert exit_code([capture(4, state=CaptureState.WRITTEN)]) == 1  # written, but never checked
