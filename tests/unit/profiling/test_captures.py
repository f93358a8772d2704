"""The life of a capture: every transition needs its fact, and the clock alone changes nothing."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.capture import CaptureState, TraceFile
from dynolog.profiling.captures import READY_POLLS_TO_REPLACE, Capture, Subject, Timing
from dynolog.profiling.observations import Checked, FinalSeen, Invalid, NothingThere, TemporarySeen, Unseen
from fakes.profiling import FILE, ManualClock

PATH = "/tmp/t_7.json"
FINAL = FinalSeen(PATH, "/host" + PATH, 900)
CHECKED = Checked(FILE, PATH, "/host" + PATH)
DAY_S = 86400.0
Step = Callable[[Capture], object]


class FakeConfig:
    """A config whose text is short."""

    def render(self, trace_id: str) -> str:
        return "CONFIG"

    def fallback_paths(self, pid: int) -> tuple[str, ...]:
        return ("/tmp/other.json",)


class Watched:
    """A capture, its clock, and how often it said that it changed."""

    def __init__(self, timing: Timing | None = None, uid: int = 1000, host_pid: int = 7) -> None:
        self.clock = ManualClock()
        self.changes = 0
        self.capture = Capture(
            capture_id="r.0",
            request_id="r",
            subject=Subject(pid=7, host_pid=host_pid, uid=uid, job="", rank=0, name="python", path=PATH),
            config=FakeConfig(),
            timing=timing or Timing(longest_s=10),
            asked_by="uid 1000",
            expected_s=6.5,
            clock=self.clock,
            on_change=self._count,
        )

    def _count(self, capture: Capture) -> None:
        self.changes += 1

    def in_state(self, state: CaptureState) -> bool:
        # A method, because mypy takes a property for unchanged between two looks.
        return self.capture.state is state

    def poll(self, ready: bool = True, uid: int = 1000) -> str | None:
        return self.capture.on_poll(ready=ready, uid=uid)

    def see(self, *observations: FinalSeen | Checked | Invalid | NothingThere | TemporarySeen | Unseen) -> None:
        for observation in observations:
            self.capture.on_observation(observation)

    def last_fact(self) -> str:
        return self.capture.history[-1].fact


def delivered(timing: Timing | None = None) -> Watched:
    watched = Watched(timing)
    assert watched.poll() == "CONFIG"
    return watched


def recording(timing: Timing | None = None) -> Watched:
    watched = delivered(timing)
    watched.poll(ready=False)
    assert watched.in_state(CaptureState.RECORDING)
    return watched


def test_a_config_is_given_to_the_first_ready_poll_and_only_to_it() -> None:
    watched = Watched()
    assert watched.poll() == "CONFIG"
    assert watched.in_state(CaptureState.DELIVERED)
    assert watched.poll() is None
    assert watched.poll(ready=False) is None
    assert watched.poll() is None


def test_a_config_is_held_until_the_activities_bit_is_back() -> None:
    watched = Watched()
    for _ in range(20):
        assert watched.poll(ready=False) is None
    assert watched.in_state(CaptureState.PENDING)
    assert watched.poll() == "CONFIG"


def test_a_reply_that_did_not_get_through_is_sent_again_at_the_next_poll() -> None:
    watched = delivered()
    watched.capture.on_reply_failed("gone")
    assert watched.in_state(CaptureState.PENDING)
    assert watched.poll() == "CONFIG"


def test_replies_that_fail_for_ever_do_not_fill_memory() -> None:
    watched = Watched()
    for _ in range(1000):
        watched.poll()
        watched.capture.on_reply_failed("gone")
    assert len(watched.capture.history) <= 65
    assert watched.capture.history[0].fact == "asked for by uid 1000"


def test_another_user_never_gets_the_config() -> None:
    watched = Watched(uid=1000)
    assert watched.poll(uid=1001) is None
    assert watched.in_state(CaptureState.FAILED)
    assert "uid 1001" in watched.capture.reason
    assert watched.poll(uid=1000) is None


@pytest.mark.parametrize(
    "fact", [lambda w: w.poll(ready=False), lambda w: w.see(TemporarySeen(10))], ids=["poll", "file"]
)
def test_recording_is_seen_by_a_poll_or_by_the_temporary_file(fact: Callable[[Watched], object]) -> None:
    watched = delivered()
    watched.clock.pass_s(DAY_S)
    assert watched.in_state(CaptureState.DELIVERED)
    fact(watched)
    assert watched.in_state(CaptureState.RECORDING)


def test_written_needs_the_check_and_not_just_the_file() -> None:
    watched = recording()
    watched.see(FINAL)
    watched.clock.pass_s(DAY_S)
    for _ in range(50):
        watched.poll()
    assert watched.in_state(CaptureState.RECORDING)
    watched.see(CHECKED)
    assert watched.in_state(CaptureState.WRITTEN)
    info = watched.capture.info()
    assert (info.host_path, info.file, info.reason) == ("/host" + PATH, FILE, "")


def test_a_short_trace_may_be_written_without_ever_being_seen_recording() -> None:
    watched = delivered()
    watched.see(FINAL, CHECKED)
    assert watched.in_state(CaptureState.WRITTEN)


def test_an_empty_trace_is_reported_as_empty() -> None:
    watched = recording()
    watched.see(Checked(TraceFile(size_bytes=900, sha256="", events=0), PATH, PATH))
    assert watched.in_state(CaptureState.WRITTEN)
    assert "empty" in watched.capture.reason


def test_a_file_at_another_place_is_shown_there() -> None:
    watched = recording()
    watched.see(Checked(FILE, "/tmp/libkineto_activities_7.json", ""))
    assert watched.capture.info().path == "/tmp/libkineto_activities_7.json"


def test_a_broken_file_fails() -> None:
    watched = recording()
    watched.see(FINAL, Invalid(PATH, "it ends in the middle of an event"))
    assert watched.in_state(CaptureState.FAILED)
    assert watched.capture.reason == f"{PATH} is not a whole trace: it ends in the middle of an event"


def test_a_file_that_could_not_be_read_is_not_called_broken() -> None:
    watched = recording()
    watched.see(FINAL, Invalid(PATH, "the daemon cannot read it", was_read=False))
    assert watched.in_state(CaptureState.FAILED)
    assert watched.capture.reason == f"{PATH} may be whole, but was not checked: the daemon cannot read it"


def test_a_trainer_that_comes_back_ready_without_a_file_has_failed() -> None:
    """The end must be past, and two ready polls must have come after it: with either missing nothing changes."""
    watched = recording()
    for _ in range(10):
        watched.poll()
    assert watched.in_state(CaptureState.RECORDING)  # polls without the end
    watched.clock.pass_s(DAY_S)
    assert watched.in_state(CaptureState.RECORDING)  # the end without polls
    watched.poll()
    assert watched.in_state(CaptureState.RECORDING)
    watched.poll()
    assert watched.in_state(CaptureState.FAILED)
    assert "no file was seen" in watched.capture.reason


def test_a_config_that_the_trainer_refused_fails_too() -> None:
    watched = delivered()
    watched.clock.pass_s(11)
    watched.poll()
    watched.poll()
    assert watched.in_state(CaptureState.FAILED)
    assert "not seen recording" in watched.capture.reason


def test_a_busy_poll_or_a_growing_file_starts_the_count_anew() -> None:
    watched = recording()
    watched.clock.pass_s(DAY_S)
    watched.poll()
    watched.poll(ready=False)
    watched.poll()
    watched.see(TemporarySeen(10))
    watched.poll()
    watched.see(TemporarySeen(20))
    watched.poll()
    assert watched.in_state(CaptureState.RECORDING)
    watched.see(TemporarySeen(20))
    watched.poll()
    assert watched.in_state(CaptureState.FAILED)


def test_the_expected_end_counts_from_the_start_time() -> None:
    watched = Watched(Timing(start_time_ms=0, longest_s=10))
    start_ms = watched.clock.wall_ns() // 10**6 + 60_000
    watched = Watched(Timing(start_time_ms=start_ms, longest_s=10))
    watched.poll()
    watched.clock.pass_s(69)
    for _ in range(5):
        watched.poll()
    assert watched.in_state(CaptureState.DELIVERED)
    watched.clock.pass_s(2)
    watched.poll()
    watched.poll()
    assert watched.in_state(CaptureState.FAILED)


@pytest.mark.parametrize(("ahead_s", "is_said"), [(8.4, True), (10.9, True), (11.1, False)])
def test_a_config_that_left_no_time_for_a_late_poll_is_given_as_the_reason(ahead_s: float, is_said: bool) -> None:
    """Seen on a busy machine: polls every 5 s, a warm-up of 5 s, the answer read one poll late."""
    start_ms = ManualClock().wall_ns() // 10**6 + int(ahead_s * 1000)
    watched = delivered(Timing(start_time_ms=start_ms, warmup_s=5, interval_s=5, longest_s=10))
    watched.clock.pass_s(60)
    watched.poll()
    watched.poll()
    assert watched.in_state(CaptureState.FAILED)
    late = f"the config was sent {ahead_s:.1f} s before the start"
    assert (late in watched.capture.reason) is is_said
    assert "log" in watched.capture.reason


def test_iterations_have_no_end_before_the_trainer_was_seen_profiling() -> None:
    watched = delivered(Timing())
    watched.clock.pass_s(DAY_S)
    for _ in range(100):
        watched.poll()
    assert watched.in_state(CaptureState.DELIVERED)
    watched.poll(ready=False)
    watched.poll()
    watched.poll()
    assert watched.in_state(CaptureState.FAILED)


def test_iterations_that_never_begin_may_be_replaced_by_a_new_request() -> None:
    watched = delivered(Timing())
    for _ in range(READY_POLLS_TO_REPLACE - 1):
        watched.poll()
    watched.clock.pass_s(DAY_S)
    replaceable = [watched.capture.may_be_replaced]
    watched.poll()
    replaceable.append(watched.capture.may_be_replaced)
    assert replaceable == [False, True]
    watched.capture.on_replaced("uid 5")
    assert watched.in_state(CaptureState.FAILED)
    assert "uid 5" in watched.capture.reason


def test_a_poll_after_the_start_time_withdraws_the_config() -> None:
    clock = ManualClock()
    watched = Watched(Timing(start_time_ms=clock.wall_ns() // 10**6 + 5_000, longest_s=10))
    watched.clock.pass_s(DAY_S)
    assert watched.in_state(CaptureState.PENDING)  # the time alone is no fact
    assert watched.poll() is None
    assert watched.in_state(CaptureState.EXPIRED)
    assert "after the start time" in watched.capture.reason


def test_a_process_that_dies_before_its_poll_fails_the_capture() -> None:
    watched = Watched()
    watched.capture.on_death("the process 7 ended")
    assert watched.in_state(CaptureState.FAILED)
    assert watched.capture.reason == "the process 7 ended before it took the config"


@pytest.mark.parametrize("make", [delivered, recording])
def test_a_death_fails_only_when_the_last_look_finds_no_file(make: Callable[[], Watched]) -> None:
    watched = make()
    before = watched.capture.state
    watched.see(NothingThere())
    assert watched.in_state(before)  # nothing there, but it lives
    watched.capture.on_death("the process 7 ended")
    watched.clock.pass_s(DAY_S)
    assert watched.in_state(before)  # dead, but the file may be there
    watched.see(NothingThere())
    assert watched.in_state(CaptureState.FAILED)
    assert "the process 7 ended while" in watched.capture.reason


def test_a_process_that_dies_after_its_file_is_written_is_a_success() -> None:
    watched = recording()
    watched.see(FINAL)
    watched.capture.on_death("the process 7 ended")
    watched.see(NothingThere())
    assert watched.in_state(CaptureState.RECORDING)
    watched.see(CHECKED)
    assert watched.in_state(CaptureState.WRITTEN)


def test_a_trainer_that_was_dropped_for_silence_withdraws_or_fails() -> None:
    watched = Watched()
    watched.clock.pass_s(DAY_S)
    assert watched.in_state(CaptureState.PENDING)
    watched.capture.on_left("it fell silent")
    assert watched.in_state(CaptureState.EXPIRED)
    watched = recording()
    watched.capture.on_left("it fell silent")
    assert watched.in_state(CaptureState.FAILED)


def test_an_unverified_trainer_s_files_are_said_to_be_out_of_sight() -> None:
    watched = Watched(host_pid=0)
    watched.poll()
    watched.clock.pass_s(DAY_S)
    watched.poll()
    watched.poll()
    assert PATH in watched.capture.reason
    assert "unverified" in watched.capture.reason


def test_files_seen_before_delivery_are_somebody_else_s() -> None:
    watched = Watched()
    watched.see(TemporarySeen(5), FINAL, CHECKED, Invalid(PATH, ""))
    assert watched.in_state(CaptureState.PENDING)


def test_bytes_so_far_are_told_as_they_grow() -> None:
    watched = recording()
    changes = watched.changes
    watched.see(TemporarySeen(100), TemporarySeen(100), TemporarySeen(250))
    assert watched.changes == changes + 2
    assert watched.capture.info().file_bytes_so_far == 250


FACTS: tuple[Step, ...] = (
    lambda c: c.on_poll(ready=True, uid=1000),
    lambda c: c.on_poll(ready=False, uid=1000),
    lambda c: c.on_reply_failed("x"),
    lambda c: c.on_observation(TemporarySeen(10)),
    lambda c: c.on_observation(FINAL),
    lambda c: c.on_observation(CHECKED),
    lambda c: c.on_observation(Invalid(PATH, "x")),
    lambda c: c.on_observation(NothingThere()),
    lambda c: c.on_death("it ended"),
    lambda c: c.on_left("it left"),
)


@given(st.lists(st.tuples(st.sampled_from(FACTS), st.floats(0, 1e5)), max_size=30))
def test_whatever_happens_a_final_state_stays_and_every_change_has_its_fact(steps: list[tuple[Step, float]]) -> None:
    watched = Watched()
    for step, seconds in steps:
        before = watched.capture.info()
        watched.clock.pass_s(seconds)
        assert watched.capture.info() == before
        step(watched.capture)
        after = watched.capture.info()
        if before.state.is_final:
            assert after == before
        if after.state is not before.state:
            assert after.history[-1].state is after.state
            assert after.history[-1].fact
        if after.state in (CaptureState.FAILED, CaptureState.EXPIRED):
            assert after.reason
        assert after.state is not CaptureState.WRITTEN or after.file == FILE


UNSEEN = Unseen("the daemon runs as uid 1000 and may not look there")
ELSEWHERE = f"its files cannot be seen from here ({UNSEEN.reason}): look for {PATH} yourself"


def test_what_cannot_be_seen_is_not_said_to_be_missing() -> None:
    """A daemon of another user: the file may well be there, whichever way the capture ends."""
    polled = recording()
    polled.see(UNSEEN)
    polled.clock.pass_s(20)
    polled.poll()
    polled.poll()
    died = recording()
    died.see(UNSEEN)
    died.capture.on_death("the process 7 ended")
    died.see(NothingThere())
    left = recording()
    left.see(UNSEEN)
    left.capture.on_left("it has not polled for 60 s")
    for watched in (polled, died, left):
        assert watched.in_state(CaptureState.FAILED)
        assert watched.capture.reason.endswith(f"; {ELSEWHERE}")


def test_what_can_be_seen_again_is_said_to_be_missing() -> None:
    watched = recording()
    watched.see(UNSEEN, Unseen(""))
    watched.capture.on_death("the process 7 ended")
    watched.see(NothingThere())
    assert watched.capture.reason.endswith("and left no complete file")


def test_a_memory_snapshot_without_events_is_no_empty_trace() -> None:
    watched = recording()
    snapshot = TraceFile(size_bytes=9, sha256="0" * 64, events=0, memory_snapshot=True)
    watched.see(Checked(snapshot, PATH, PATH))
    assert watched.in_state(CaptureState.WRITTEN)
    assert watched.capture.reason == ""
