"""The GPUs as the collector and the RPC ask for them: nobody waits longer than he can afford, and a pause ends by itself."""

import queue
import threading
from collections.abc import Callable, Iterator

import msgspec
import pytest

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading, GpuSample, ProfilingState
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_child import ChildFailed
from dynolog.sources.gpu_source import GpuSource
from dynolog.sources.gpu_wire import Done, Sampled
from fakes.gpu_children import DEADLINE_S, Machine

LONG_S = 30.0
INTERVAL_S = 10.0


class Sourced:
    """A source, the machine below it, and what it answered to wishes."""

    def __init__(self) -> None:
        self.machine = Machine(GpuReading(device="0"))
        self.answers: queue.Queue[bool] = queue.Queue()
        self.source = self.make(LONG_S)

    def make(self, wait_s: float) -> GpuSource:
        options = GpuOptions(backend="dcgm", interval_s=INTERVAL_S)
        return GpuSource(options, DEADLINE_S, self.machine.clock, self.machine.make_child, wait_s)

    def wish(self, ask: Callable[[Callable[[bool], None]], None]) -> bool:
        ask(self.answers.put)
        return self.answers.get(timeout=LONG_S)

    def pause(self, seconds: float) -> bool:
        return self.wish(lambda answer: self.source.pause(seconds, answer))

    def calls(self) -> list[str]:
        return [call for _, call in self.machine.calls]


@pytest.fixture
def sourced() -> Iterator[Sourced]:
    made = Sourced()
    yield made
    made.machine.hold.set()
    made.source.close(LONG_S)


def wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(LONG_S / 0.01)):
        if true():
            return
        pause.wait(0.01)
    pytest.fail("it did not become true")


def test_each_read_gives_a_new_sample(sourced: Sourced) -> None:
    first, second = sourced.source.read(), sourced.source.read()
    assert first is not None
    assert second is not None
    assert first is not second
    assert sourced.calls() == ["open", "sample", "sample"]


def test_a_late_sample_is_given_at_the_next_read(sourced: Sourced) -> None:
    sourced.source = source = sourced.make(0.01)
    sourced.machine.hold.clear()
    assert source.read() is None
    assert source.read() is None
    sourced.machine.hold.set()
    wait_until(lambda: source.status().backend == "dcgm" and source.status().expected == 1)
    sourced.machine.hold.clear()
    late = source.read()
    assert isinstance(late, Sampled)
    assert source.read() is None  # nothing is given twice


def test_a_late_sample_that_is_older_than_two_intervals_is_dropped(sourced: Sourced) -> None:
    sourced.source = source = sourced.make(0.01)
    sourced.machine.hold.clear()
    assert source.read() is None
    sourced.machine.hold.set()
    wait_until(lambda: source.status().expected == 1)
    sourced.machine.hold.clear()
    sourced.machine.clock.move(2 * INTERVAL_S + 0.1)
    with pytest.raises(SourceUnavailable, match="no answer for more than two intervals"):
        source.read()


def test_values_that_the_backend_calls_old_are_dropped(sourced: Sourced) -> None:
    """The age that DCGM gives its values counts as well."""
    sourced.machine.change = lambda sample: msgspec.structs.replace(sample, age_s=2 * INTERVAL_S + 1)
    with pytest.raises(SourceUnavailable, match="no answer"):
        sourced.source.read()


def test_a_failure_is_told_until_a_sample_comes_again(sourced: Sourced) -> None:
    source = sourced.source
    source.read()
    sourced.machine.answers["dcgm", "sample"] = ChildFailed("its process ended in sample: SIGSEGV")
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match="SIGSEGV"):
            source.read()
    assert "SIGSEGV" in source.status().why
    assert source.status().seen == 0
    del sourced.machine.answers["dcgm", "sample"]
    sourced.machine.clock.move(10)
    assert source.read() is not None
    assert source.status().why == ""


def test_the_status_tells_of_a_call_that_hangs_before_it_is_given_up(sourced: Sourced) -> None:
    """What was read before it must not look like the present; a source that is only asked seldom is not late."""
    source = sourced.make(0.0)
    sourced.source = source
    wait_until(lambda: source.read() is not None)
    wait_until(lambda: not source._is_asked)  # the last read asked once more
    sourced.machine.clock.move(10 * INTERVAL_S)
    assert source.status().why == ""
    sourced.machine.hold.clear()
    with pytest.raises(SourceUnavailable):  # what there is was read long ago
        source.read()
    sourced.machine.clock.move(2 * INTERVAL_S + 1)
    assert "no answer for more than two intervals" in source.status().why
    sourced.machine.hold.set()
    wait_until(lambda: source.status().why == "")


def test_a_sample_beside_those_of_the_collector_is_made_when_that_is_cheap(sourced: Sourced) -> None:
    """It goes to whoever gets all samples; the collector still gets one of its own. A reading of 0.1 s is followed by 4.9 s of rest."""
    source, clock = sourced.source, sourced.machine.clock
    source.freshen()
    assert sourced.calls() == []  # nobody reads: nothing is begun
    came: list[GpuSample | None] = []
    source.on_sample = came.append

    def slow(sample: GpuSample) -> GpuSample:
        clock.move(0.1)
        return sample

    sourced.machine.change = slow
    assert source.read() is not None
    clock.move(4.8)
    source.freshen()
    assert sourced.calls() == ["open", "sample"]
    clock.move(0.1)
    source.freshen()
    wait_until(lambda: len(came) == 2)
    source.freshen()
    assert source.read() is not None
    assert sourced.calls() == ["open", *["sample"] * 3]
    sourced.machine.answers["dcgm", "sample"] = ChildFailed("its process ended in sample: SIGSEGV")
    with pytest.raises(SourceUnavailable):
        source.read()
    clock.move(60)
    made = len(sourced.calls())
    source.freshen()
    assert source.status().why
    assert not source._is_asked
    assert len(sourced.calls()) == made, "a driver that fails is left to the collector"


def test_an_error_of_our_own_is_told_too(sourced: Sourced, caplog: pytest.LogCaptureFixture) -> None:
    sourced.machine.change = lambda sample: msgspec.structs.replace(sample, seen=1 // 0)
    with pytest.raises(SourceUnavailable, match="ZeroDivisionError"):
        sourced.source.read()
    assert "ZeroDivisionError" in caplog.text


def test_a_pause_ends_by_itself(sourced: Sourced) -> None:
    source, clock = sourced.source, sourced.machine.clock
    source.read()
    assert sourced.pause(300)
    status = source.status()
    assert status.profiling is ProfilingState.PAUSED
    assert status.paused_until_wall_ns == clock.wall_ns() + 300_000_000_000
    clock.move(299)
    source.read()
    assert "resume" not in sourced.calls()
    clock.move(2)
    source.read()  # wakes the thread, whose own waiting is by the real clock
    wait_until(lambda: "resume" in sourced.calls())
    assert source.status().paused_until_wall_ns == 0


def test_the_thread_wakes_by_itself_for_the_end_of_a_pause(sourced: Sourced) -> None:
    sourced.source.read()
    assert sourced.pause(0.05)
    sourced.machine.clock.move(0.06)
    wait_until(lambda: sourced.calls()[-1] == "resume")


def test_a_second_pause_replaces_the_time_of_the_first(sourced: Sourced) -> None:
    source, clock = sourced.source, sourced.machine.clock
    source.read()
    assert sourced.pause(300)
    assert sourced.pause(10)
    assert source.status().paused_until_wall_ns == clock.wall_ns() + 10_000_000_000


def test_resuming_ends_a_pause(sourced: Sourced) -> None:
    sourced.source.read()
    assert sourced.pause(300)
    assert sourced.wish(sourced.source.resume)
    assert sourced.source.status().paused_until_wall_ns == 0
    assert sourced.calls()[-2:] == ["pause", "resume"]


def test_a_pause_that_does_nothing_says_so(sourced: Sourced) -> None:
    assert not sourced.pause(300)  # no backend is open yet
    sourced.source.read()
    sourced.machine.answers["dcgm", "pause"] = Done(ok=False)
    assert not sourced.pause(300)
    sourced.machine.answers["dcgm", "pause"] = ChildFailed("its process ended in pause: SIGSEGV")
    assert not sourced.pause(300)
    assert sourced.source.status().paused_until_wall_ns == 0


def test_close_ends_the_thread_and_the_child_and_a_later_read_begins_anew(sourced: Sourced) -> None:
    source = sourced.source
    source.read()
    source.close(LONG_S)
    assert sourced.machine.children[0].closed
    assert source.read() is not None
    assert len(sourced.machine.children) == 2


def test_close_does_not_wait_for_a_call_that_hangs(sourced: Sourced) -> None:
    sourced.source = source = sourced.make(0.01)
    source.read()
    wait_until(lambda: source.status().expected == 1)
    sourced.machine.hold.clear()
    source.read()
    wait_until(lambda: sourced.calls().count("sample") == 2)
    source.pause(300, sourced.answers.put)
    source.close(0.01)  # the child is killed, which sets the machine free here
    assert sourced.answers.get(timeout=LONG_S) is False
    wait_until(lambda: sourced.machine.children[0].closed)
