"""The sampler beside traces: it samples when somebody wants it, and costs nothing else."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest

from dynolog.model.clock import Clock, SystemClock
from dynolog.pipeline import host_burst
from dynolog.pipeline.host_burst import HostBurst, Sample

MS = 1_000_000
FOR_EVER = 10**15


class Reading(msgspec.Struct, frozen=True):
    wall_ns: int
    monotonic_ns: int
    number: int


class Source:
    """Counts its readings; `costs_ns` of CPU each."""

    def __init__(self, costs_ns: int = 0) -> None:
        self.readings = 0
        self.costs_ns = costs_ns
        self.fails = False
        self.thread = ""
        self.missing: Mapping[str, str] = {}

    def read(self) -> Reading:
        if self.fails:
            raise RuntimeError("broken")
        self.thread = threading.current_thread().name
        until_ns = time.thread_time_ns() + self.costs_ns
        while time.thread_time_ns() < until_ns:
            pass
        self.readings += 1
        return Reading(time.time_ns(), time.monotonic_ns(), self.readings)

    def compute(self, before: Reading, after: Reading) -> Mapping[str, float]:
        assert after.number == before.number + 1
        return {"number": float(before.number)}


class Bursts:
    """A burst and the sources that it made."""

    def __init__(self, held: tuple[Callable[[], Sample | None], ...] = (), clock: Clock | None = None) -> None:
        self.sources: list[Source] = []
        self.next: Callable[[], Source] = Source
        self.burst = HostBurst(self._make, clock or SystemClock(), held)

    def _make(self) -> Source:
        self.sources.append(self.next())
        return self.sources[-1]

    def samples(self) -> list[tuple[int, int, float]]:
        """(begin, elapsed, value) of all."""
        return [
            (begin_ns, elapsed_ns, value)
            for block in self.burst.page(0, FOR_EVER * 10**4).blocks
            for series in block.series
            for begin_ns, elapsed_ns, value in zip(block.begin_wall_ns, block.elapsed_ns, series.values, strict=True)
            if value is not None
        ]

    def until(self, is_true: Callable[[], object]) -> None:
        deadline = time.monotonic() + 30
        pause = threading.Event()
        while not is_true():
            assert time.monotonic() < deadline, "not within 30 s"
            pause.wait(0.005)

    @property
    def is_running(self) -> bool:
        return any(thread.name == "host burst" for thread in threading.enumerate())


@pytest.fixture
def bursts() -> Iterator[Bursts]:
    made = Bursts()
    yield made
    made.burst.close()
    made.until(lambda: not made.is_running)


def test_samples_follow_each_other_without_a_gap_until_nobody_wants_them(bursts: Bursts) -> None:
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.window("a", 0, FOR_EVER)
    bursts.until(lambda: len(bursts.samples()) >= 5)
    bursts.burst.done("a")
    bursts.until(lambda: not bursts.is_running)
    samples = bursts.samples()
    assert [value for _, _, value in samples] == list(range(1, len(samples) + 1))
    assert bursts.sources[0].readings == len(samples) + 1
    assert bursts.sources[0].thread == "host burst"
    for (begin_ns, elapsed_ns, _), (next_ns, _, _) in itertools.pairwise(samples):
        assert abs(begin_ns + elapsed_ns - next_ns) < MS, "the wall clock and the measured interval agree"


def test_nothing_is_read_before_the_time_and_nothing_wakes(bursts: Bursts) -> None:
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.arm("b", 20 * MS)
    bursts.burst.window("b", FOR_EVER // 10**3, FOR_EVER)
    assert bursts.is_running
    bursts.burst.done("b")
    bursts.burst.done("a")
    bursts.until(lambda: not bursts.is_running)
    assert not bursts.sources


def test_a_time_ends_by_itself(bursts: Bursts) -> None:
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.window("a", 0, 100 * MS)
    bursts.until(lambda: not bursts.is_running)
    assert bursts.samples()


class JustPast(SystemClock):
    """Its wall clock has just passed a multiple of any interval: the next one of 10 s is 10 s away."""

    def __init__(self) -> None:
        self._began_ns = time.monotonic_ns()

    def wall_ns(self) -> int:
        return 10**18 + MS + time.monotonic_ns() - self._began_ns


def test_the_first_reading_does_not_wait_for_a_multiple_of_the_interval() -> None:
    """All may be recorded before that comes."""
    bursts = Bursts(clock=JustPast())
    bursts.burst.arm("a", 10_000 * MS)
    began_ns = time.monotonic_ns()
    bursts.burst.window("a", 0, FOR_EVER)
    bursts.until(lambda: bursts.sources and bursts.sources[0].readings)
    bursts.burst.done("a")
    bursts.until(lambda: not bursts.is_running)
    assert time.monotonic_ns() - began_ns < 5_000 * MS
    assert len(bursts.samples()) == 1, "from the begin to where it was over"


def test_one_sampler_serves_all_at_the_shortest_interval(bursts: Bursts) -> None:
    bursts.burst.arm("slow", 10_000 * MS)
    bursts.burst.window("slow", 0, FOR_EVER)
    bursts.until(lambda: bursts.sources)
    bursts.burst.arm("fast", 20 * MS)
    bursts.burst.window("fast", 0, FOR_EVER)
    bursts.until(lambda: len(bursts.samples()) >= 3)
    assert len(bursts.sources) == 1
    bursts.burst.done("fast")
    bursts.burst.done("slow")
    bursts.until(lambda: not bursts.is_running)
    assert len(bursts.sources) == 1


def test_a_failure_costs_that_trace_its_samples_and_nothing_else(
    bursts: Bursts, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Source:
        source = Source()
        source.fails = True
        return source

    bursts.next = broken
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.window("a", 0, FOR_EVER)
    bursts.until(lambda: not bursts.is_running)
    assert "sampling the host beside a trace failed" in caplog.text
    bursts.next = Source
    bursts.burst.arm("b", 20 * MS)
    bursts.burst.window("b", 0, FOR_EVER)
    bursts.until(lambda: len(bursts.samples()) >= 2)


def test_what_is_kept_is_bounded(bursts: Bursts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_burst, "MOST_ROWS", 3)
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.window("a", 0, FOR_EVER)
    bursts.until(lambda: bursts.sources and bursts.sources[0].readings >= 6)
    bursts.burst.done("a")
    bursts.until(lambda: not bursts.is_running)
    samples = bursts.samples()
    assert len(samples) == 3
    assert samples[-1][2] == bursts.sources[0].readings - 1, "the oldest went"


def test_dear_readings_stretch_the_interval(bursts: Bursts) -> None:
    """2 ms of CPU at 20 ms would be a tenth of a core: at most a fiftieth is taken, so 100 ms pass between them."""
    bursts.next = lambda: Source(costs_ns=2 * MS)
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.window("a", 0, FOR_EVER)
    bursts.until(lambda: len(bursts.samples()) >= 4)
    # The first one's cost is not known yet, and the last may be cut short.
    assert all(elapsed_ns > 60 * MS for _, elapsed_ns, _ in bursts.samples()[1:4])


def test_what_others_measure_is_taken_once_each() -> None:
    sample = Sample(5, 5, 0, {"gpu_power_watts.0": 300.0})
    bursts = Bursts(held=(lambda: sample, lambda: None))
    bursts.burst.arm("a", 20 * MS)
    bursts.burst.window("a", 0, FOR_EVER)
    bursts.until(lambda: bursts.sources and bursts.sources[0].readings >= 3)
    bursts.burst.close()
    bursts.until(lambda: not bursts.is_running)
    blocks = bursts.burst.page(0, 10).blocks
    assert [(block.begin_wall_ns, block.series[0].values) for block in blocks] == [((5,), (300.0,))]


def test_unknown_keys_and_a_closed_sampler_are_no_errors(bursts: Bursts) -> None:
    bursts.burst.window("x", 0, 1)
    bursts.burst.done("x")
    bursts.burst.close()
    bursts.burst.arm("a", 20 * MS)
    assert not bursts.is_running
