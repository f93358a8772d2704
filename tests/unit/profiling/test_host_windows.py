"""When the host is sampled beside a capture: only around its recording, and never after its end."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dynolog.model.capture import CaptureState
from dynolog.profiling.observations import Checked, NothingThere
from fakes.profiling import CONFIG, FILE, ITERATIONS, FakeService, facts

MS = 1_000_000
WARMUP = CONFIG + "ACTIVITIES_WARMUP_PERIOD_SECS=3\n"


class Sampler:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.armed: dict[str, int] = {}
        self.windows: dict[str, tuple[int, int]] = {}
        self.over: list[str] = []

    def arm(self, key: str, interval_ns: int) -> None:
        self.armed[key] = interval_ns

    def window(self, key: str, begin_in_ns: int, end_in_ns: int) -> None:
        assert key not in self.windows, "told once"
        self.windows[key] = begin_in_ns, end_in_ns

    def done(self, key: str) -> None:
        self.over.append(key)


class Sampled(FakeService):
    """A service with a sampler, and one trainer."""

    def __init__(self, stack: ExitStack) -> None:
        self.seen = Sampler()
        self.sampler = self.seen
        super().__init__(stack)
        self.trainer(facts(100))


@pytest.fixture
def service() -> Iterator[Sampled]:
    with ExitStack() as stack:
        yield Sampled(stack)


def test_a_request_that_does_not_ask_for_it_samples_nothing(service: Sampled) -> None:
    service.ask()
    assert service.poll(100)
    assert not service.seen.armed


def test_sampling_begins_before_the_warm_up_is_over_and_ends_when_the_file_is_there(service: Sampled) -> None:
    (capture,) = service.ask(config=WARMUP, host_interval_ms=50).captures
    assert service.seen.armed == {capture.id: 50 * MS}
    assert not service.seen.windows, "while it is pending nobody knows when it will record"
    assert service.poll(100)
    begin_ns, end_ns = service.seen.windows[capture.id]
    assert begin_ns == 2_500 * MS
    assert 10_000 * MS < end_ns < 30_000 * MS
    service.poll(100, mask=1)
    assert not service.seen.over
    service.watch.report(capture.id, Checked(file=FILE, path="/tmp/t.json", host_path="/tmp/t.json"))
    assert service.seen.over == [capture.id]


def test_with_a_start_time_it_begins_just_before_that(service: Sampled) -> None:
    start_ms = service.clock.wall_ns() // MS + 60_000
    config = CONFIG.replace("PROFILE_START_TIME=0", f"PROFILE_START_TIME={start_ms}")
    (capture,) = service.ask(config=config, host_interval_ms=100).captures
    service.clock.pass_s(10)
    assert service.poll(100)
    begin_ns, end_ns = service.seen.windows[capture.id]
    assert begin_ns == 49_500 * MS
    assert end_ns > 50_000 * MS


@pytest.mark.parametrize("more", ["", "ACTIVITIES_WARMUP_PERIOD_SECS=30\n", "PROFILE_START_TIME=4102444800000\n"])
def test_iterations_may_be_recorded_at_once_and_have_no_known_end_but_a_bound(service: Sampled, more: str) -> None:
    """libkineto waits for neither the warm-up nor the start time when it counts iterations."""
    (capture,) = service.ask(config=ITERATIONS + more, host_interval_ms=100).captures
    assert not service.seen.windows
    service.clock.pass_s(3)
    assert service.poll(100)
    assert service.seen.windows[capture.id] == (0, 600 * 10**9)


def test_a_reply_that_did_not_get_through_has_its_time_told_anew(service: Sampled) -> None:
    (capture,) = service.ask(host_interval_ms=100).captures
    assert service.poll(100)
    service.lose_reply(100)
    service.seen.windows.clear()
    assert service.poll(100)
    assert capture.id in service.seen.windows


def test_a_lost_reply_for_iterations_begins_anew_at_the_next_one(service: Sampled) -> None:
    (capture,) = service.ask(config=ITERATIONS, host_interval_ms=100).captures
    assert service.poll(100)
    service.lose_reply(100)
    service.seen.windows.clear()
    service.clock.pass_s(5)
    assert service.poll(100)
    assert service.seen.windows == {capture.id: (0, 600 * 10**9)}


def test_a_process_that_ends_before_it_was_asked_ends_the_wish(service: Sampled) -> None:
    (capture,) = service.ask(host_interval_ms=100).captures
    service.end(100)
    assert service.service.progress(capture.request_id)[0].captures[0].state is CaptureState.FAILED
    assert service.seen.over == [capture.id]


def test_a_trainer_that_dies_while_it_records_ends_the_wish(service: Sampled) -> None:
    (capture,) = service.ask(host_interval_ms=100).captures
    assert service.poll(100)
    service.poll(100, mask=1)
    service.end(100)
    service.watch.report(capture.id, NothingThere())
    assert service.service.progress(capture.request_id)[0].captures[0].state is CaptureState.FAILED
    assert service.seen.over == [capture.id]
