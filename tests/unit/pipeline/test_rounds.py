"""Rounds on a clock that the test moves: ticks, hangs, failures, steps of the clock, reload and stop."""

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from dynolog.collectors.spec import CollectorSpec, Context, Notices
from dynolog.model.errors import SourceUnavailable
from dynolog.model.flag import Settings
from dynolog.model.record import Record
from dynolog.model.status import CollectorState, CollectorStatus
from dynolog.pipeline.config import PipelineConfig
from dynolog.pipeline.rounds import Pipeline
from dynolog.sources.host_files import HostFiles
from fakes.scripted_collector import Hang, ScriptedCollector, nothing
from fakes.stepped_time import WALL_START_NS, SteppedTime

SECOND = 1_000_000_000
START_S = WALL_START_NS // SECOND  # the time starts a quarter past this second


class Machine:
    """A pipeline with three scripted collectors on a stepped clock, and the records it made."""

    def __init__(self) -> None:
        self.time = SteppedTime()
        self.first = ScriptedCollector("first", self.time)
        self.second = ScriptedCollector("second", self.time)
        self.third = ScriptedCollector("third", self.time)
        self.records: list[Record] = []
        self.deliver: Callable[[Record], None] = self.records.append
        self.cpu_ns = 0
        self.pipeline: Pipeline | None = None
        self.hangs: list[Hang] = []

    def start(self, config: PipelineConfig | None = None, *collectors: ScriptedCollector) -> Pipeline:
        self.pipeline = Pipeline(
            [collector.spec for collector in collectors or (self.first, self.second, self.third)],
            self.context_of,
            self.time,
            self.take,
            config or every(1),
            wait=self.time.wait,
            cpu_ns=lambda: self.cpu_ns,
        )
        self.pipeline.start()
        self.time.settle()
        return self.pipeline

    def take(self, record: Record) -> None:
        self.deliver(record)

    def context_of(self, spec: CollectorSpec, notices: Notices) -> Context:
        return Context(host=HostFiles(), settings=Settings(()), notices=notices)

    def hang(self, collector: ScriptedCollector) -> Hang:
        hang = Hang(self.time)
        collector.on_read = hang
        self.hangs.append(hang)
        return hang

    def status(self, name: str) -> CollectorStatus:
        assert self.pipeline is not None
        return next(status for status in self.pipeline.statuses() if status.name == name)

    def seconds(self) -> list[float]:
        """When the records were taken, in seconds after the start second."""
        return [(record.wall_ns - START_S * SECOND) / SECOND for record in self.records]


def every(interval_s: float, **fields: object) -> PipelineConfig:
    """All three collectors at one interval, without a CPU budget."""
    given: dict[str, object] = {"cpu_budget_pct": 0.0, "enabled": frozenset(("first", "second", "third")), **fields}
    return PipelineConfig(interval_s=interval_s, **given)  # type: ignore[arg-type]


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    for hang in machine.hangs:
        hang.release()
    if machine.pipeline is not None:
        assert machine.pipeline.stop(5)


def test_all_due_collectors_share_one_record_on_each_multiple(machine: Machine) -> None:
    machine.start()
    machine.time.run(4)
    assert machine.seconds() == [1, 2, 3, 4]
    assert set(machine.records[1].values) == {
        f"{name}_{what}" for name in ("first", "second", "third") for what in ("reads", "elapsed_s")
    }
    assert machine.records[1].intervals_ns == {"first": SECOND, "second": SECOND, "third": SECOND}
    assert machine.records[1].source == "kernel"


def test_the_first_reading_only_sets_the_base_line(machine: Machine) -> None:
    """The base line is taken at the start, so the first record comes at the first multiple and covers 0.75 s."""
    machine.start()
    assert machine.records == []
    assert machine.status("first").state is CollectorState.STARTING
    machine.time.run(1)
    assert machine.records[0].values["first_elapsed_s"] == pytest.approx(0.75)
    assert machine.status("first").state is CollectorState.OK


def test_a_multiple_too_soon_after_the_start_is_left_out(machine: Machine) -> None:
    machine.time.step_wall(0.5)  # a quarter before a second
    machine.start()
    machine.time.run(1.3)
    assert machine.seconds() == [2]
    assert machine.records[0].values["first_elapsed_s"] == pytest.approx(1.25)


def test_fractional_intervals(machine: Machine) -> None:
    machine.start(every(0.25))
    machine.time.run(1)
    assert machine.seconds() == [0.5, 0.75, 1.0, 1.25]


def test_a_collector_with_another_interval_joins_when_it_is_due(machine: Machine) -> None:
    slow = ScriptedCollector("slow", machine.time, shortest_interval_s=2.0)
    machine.start(every(1, enabled=frozenset(("first", "slow", "second")), own_intervals_s={"second": 3.0}),
                  machine.first, machine.second, slow)  # fmt: skip
    machine.time.run(12)
    second = START_S % 3  # where multiples of three fall
    for record in machine.records[3:]:
        at = record.wall_ns // SECOND
        assert ("slow_reads" in record.values) == (at % 2 == 0)
        assert ("second_reads" in record.values) == (at % 3 == 0)
        assert "first_reads" in record.values
    assert second in (0, 1, 2)
    assert machine.records[-1].intervals_ns["first"] == SECOND
    assert {record.intervals_ns["second"] for record in machine.records[6:] if "second" in record.intervals_ns} == {
        3 * SECOND
    }


def test_a_collector_that_hangs_costs_only_itself(machine: Machine) -> None:
    """D20: the record goes out without it 0.4 intervals later, and the next ones in time."""
    machine.start()
    machine.time.run(2)
    machine.hang(machine.second)
    machine.time.run(10)
    assert machine.seconds() == list(range(1, 13))
    assert "second_reads" not in machine.records[2].values
    assert "third_reads" in machine.records[2].values
    assert machine.status("second").state is CollectorState.STALLED
    assert machine.status("second").stalls == 1
    assert len(machine.second.read_wall_ns) == 4, "a stuck collector is not called again"
    elapsed = [record.values["third_elapsed_s"] for record in machine.records]
    assert elapsed == pytest.approx([0.75, 1, 1.4, 0.6, *[1] * 8])


def test_a_stalled_collector_is_picked_up_when_it_returns_with_a_fresh_base_line(machine: Machine) -> None:
    machine.start()
    machine.time.run(2)
    hang = machine.hang(machine.second)
    machine.time.run(5)
    machine.time.apart(hang.release)
    assert machine.status("second").state is CollectorState.STARTING
    machine.time.run(3)
    assert [("second_reads" in record.values) for record in machine.records[-3:]] == [False, True, True]
    assert machine.records[-2].values["second_elapsed_s"] == pytest.approx(1)
    assert machine.status("second").state is CollectorState.OK
    assert machine.status("second").max_ms == pytest.approx(4250)


def test_a_slow_collector_holds_nobody_up_and_keeps_its_values(machine: Machine) -> None:
    """A read of 0.75 s at an interval of 1 s is late for its round, but not stalled: its values make a record of their own."""
    machine.start()
    machine.time.run(2)
    hang = machine.hang(machine.second)
    machine.time.run(1.5)  # a quarter past 3: the round of 3 went on without it at 3.4
    machine.time.apart(hang.release)
    machine.time.run(2)
    late = [record for record in machine.records if set(record.intervals_ns) == {"second"}]
    assert [record.wall_ns // SECOND - START_S for record in late] == [3]
    assert late[0].values == {"second_reads": 1, "second_elapsed_s": pytest.approx(1)}
    assert machine.status("second").stalls == 0
    assert "second_reads" in machine.records[-1].values


def test_several_that_hang_at_once_cost_a_thread_each(machine: Machine) -> None:
    machine.start()
    machine.time.run(2)
    machine.hang(machine.first)
    machine.hang(machine.second)
    machine.time.run(20)
    assert machine.seconds()[-15:] == [float(second) for second in range(8, 23)]
    assert set(machine.records[-1].intervals_ns) == {"third"}
    assert [machine.status(name).stalls for name in ("first", "second", "third")] == [1, 1, 0]


def test_a_factory_that_hangs_is_stalled_like_a_read(machine: Machine) -> None:
    hang = Hang(machine.time)
    machine.hangs.append(hang)
    machine.first.on_make = hang
    machine.start()
    machine.time.run(5)
    assert machine.status("first").state is CollectorState.STALLED
    assert "second_reads" in machine.records[-1].values


def test_an_unavailable_source_is_said_once_and_tried_up_to_once_a_minute(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    def forbidden() -> None:
        raise SourceUnavailable("/proc/second", "Permission denied", "run as root")

    machine.second.on_make = forbidden
    pipeline = machine.start()
    machine.time.run(600)
    status = machine.status("second")
    assert status.state is CollectorState.UNAVAILABLE
    assert status.error == "/proc/second: Permission denied: run as root"
    assert pipeline.missing() == ("second: /proc/second: Permission denied: run as root",)
    assert [record.message for record in caplog.records if "second" in record.message] == [
        "second is not available: /proc/second: Permission denied: run as root"
    ]
    assert 10 <= machine.second.made <= 18
    assert len(machine.records) == 600, "the rest goes on"
    machine.second.on_make = nothing
    machine.time.run(63)
    assert machine.status("second").state is CollectorState.OK
    assert pipeline.missing() == ()


@pytest.mark.parametrize(("remedy", "level"), [("run as root", "WARNING"), ("", "INFO")])
def test_only_what_can_be_remedied_is_a_warning(
    machine: Machine, caplog: pytest.LogCaptureFixture, remedy: str, level: str
) -> None:
    def absent() -> None:
        raise SourceUnavailable("/sys/class/hwmon", "no sensor", remedy)

    caplog.set_level("INFO")
    machine.first.on_make = absent
    pipeline = machine.start()
    assert [record.levelname for record in caplog.records] == [level]
    assert pipeline.missing() == (("first: /sys/class/hwmon: no sensor: run as root",) if remedy else ())
    assert machine.status("first").error.startswith("/sys/class/hwmon: no sensor"), "a remark in any case"


def test_a_collector_that_raises_is_counted_and_its_error_said_once(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("no ticks")

    machine.start()
    machine.time.run(2)
    machine.first.on_compute = broken
    machine.time.run(4)
    status = machine.status("first")
    assert status.state is CollectorState.FAILING
    assert status.error == "ZeroDivisionError: no ticks"
    assert status.failures >= 1
    assert len([record for record in caplog.records if "no ticks" in record.message]) == 1
    assert "first_reads" not in machine.records[-1].values
    assert "second_reads" in machine.records[-1].values
    machine.first.on_compute = nothing
    machine.time.run(10)
    assert machine.status("first").state is CollectorState.OK
    assert machine.status("first").error == ""


def test_after_a_failure_the_next_reading_is_a_base_line(machine: Machine) -> None:
    def broken() -> None:
        machine.first.on_read = nothing
        raise OSError("once")

    machine.start()
    machine.time.run(2)
    machine.first.on_read = broken
    machine.time.run(4)
    assert [("first_reads" in record.values) for record in machine.records] == [True, True, False, False, True, True]


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0, -2.0, 2.0, 0.4, -0.4, 0.9])
def test_steps_of_the_wall_clock_neither_burst_nor_stop_sampling(machine: Machine, step_s: float) -> None:
    """D23: intervals are of the monotonic clock; after the step the readings are on multiples again."""
    machine.start()
    machine.time.run(3.3)
    machine.time.step_wall(step_s)
    machine.time.run(10)
    gaps = [(after - before) / SECOND for before, after in pairwise(machine.first.read_monotonic_ns)]
    assert all(0.5 <= gap <= 1.5 for gap in gaps), gaps
    assert len(machine.records) in (12, 13, 14)
    assert all(wall_ns % SECOND == 0 for wall_ns in machine.first.read_wall_ns[-5:])
    elapsed = [record.values["first_elapsed_s"] for record in machine.records]
    assert elapsed == pytest.approx(gaps)


def test_after_a_suspend_there_is_one_reading_and_no_catching_up(machine: Machine) -> None:
    machine.start()
    machine.time.run(3)
    machine.time.jump(7200)
    assert machine.records[-1].values["first_elapsed_s"] == pytest.approx(7200.25)
    made = len(machine.records)
    machine.time.run(3)
    assert len(machine.records) in (made + 2, made + 3)
    assert machine.status("first").stalls == 0


def test_a_stop_that_comes_while_a_collector_reads_is_said_too(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """SIGSTOP takes the worker wherever it is; the watchdog slept then."""
    machine.start()
    machine.time.run(3)
    stop = iter([60.0])
    machine.first.on_read = lambda: machine.time.spend(next(stop, 0.0))
    machine.time.run(3)
    assert caplog.text.count("did not run for") == 1
    machine.time.run(3)
    assert caplog.text.count("did not run for") == 1


def test_reload_changes_intervals_and_switches_without_losing_base_lines(machine: Machine) -> None:
    pipeline = machine.start(every(60))
    machine.time.run(60)
    reads = len(machine.first.read_wall_ns)
    machine.time.apart(lambda: pipeline.reconfigure(every(1, enabled=frozenset(("first", "third")))))
    machine.time.run(3)
    assert len(machine.first.read_wall_ns) - reads in (3, 4)
    assert set(machine.records[-1].intervals_ns) == {"first", "third"}
    assert [record.values["first_reads"] for record in machine.records] == [1] * len(machine.records)
    assert machine.first.made == 1
    assert [status.name for status in pipeline.statuses()] == ["first", "third"]
    machine.time.apart(lambda: pipeline.reconfigure(every(1)))
    machine.time.run(3)
    assert machine.second.made == 2, "switched off, it was let go of"
    assert "second_reads" in machine.records[-1].values


def test_a_collector_that_is_off_is_not_made(machine: Machine) -> None:
    machine.start(every(1, enabled=frozenset(("first",))))
    machine.time.run(3)
    assert machine.second.made == 0
    assert set(machine.records[-1].intervals_ns) == {"first"}


def test_a_stuck_collector_that_is_switched_off_and_on_keeps_to_one_thread(machine: Machine) -> None:
    pipeline = machine.start()
    machine.time.run(2)
    hang = machine.hang(machine.second)
    machine.time.run(5)
    machine.time.apart(lambda: pipeline.reconfigure(every(1, enabled=frozenset(("first", "third")))))
    machine.time.apart(lambda: pipeline.reconfigure(every(1)))
    machine.time.run(5)
    assert machine.status("second").state is CollectorState.STALLED
    assert machine.second.made == 1
    machine.time.apart(hang.release)
    machine.time.run(3)
    assert machine.status("second").state is CollectorState.OK
    assert machine.second.made == 1


def test_a_stuck_collector_that_was_switched_off_is_let_go_of_when_it_returns(machine: Machine) -> None:
    pipeline = machine.start()
    machine.time.run(2)
    hang = machine.hang(machine.second)
    machine.time.run(5)
    machine.time.apart(lambda: pipeline.reconfigure(every(1, enabled=frozenset(("first", "third")))))
    machine.time.apart(hang.release)
    machine.time.run(2)
    assert "second_reads" not in machine.records[-1].values
    machine.time.apart(lambda: pipeline.reconfigure(every(1)))
    machine.time.run(2)
    assert machine.second.made == 2
    assert "second_reads" in machine.records[-1].values


def test_a_collector_that_is_switched_off_while_it_waits_for_its_turn_is_not_read(machine: Machine) -> None:
    pipeline = machine.start()
    machine.time.run(2)
    machine.hang(machine.second)
    machine.time.run(1)  # the round of 3 is held up by the second, and the third waits
    reads = len(machine.third.read_wall_ns)
    machine.time.apart(lambda: pipeline.reconfigure(every(1, enabled=frozenset(("first", "second")))))
    machine.time.run(3)
    assert len(machine.third.read_wall_ns) == reads
    assert machine.third.made == 1


def test_with_no_collector_on_nothing_wakes(machine: Machine) -> None:
    machine.start(every(1, enabled=frozenset()))
    machine.time.run(100)
    assert machine.time.wakeups == 0


def test_at_a_minute_there_are_two_wakeups_a_round_at_most(machine: Machine) -> None:
    machine.start(every(60))
    machine.time.run(120)
    before = machine.time.wakeups
    machine.time.run(600)
    assert len(machine.records) == 12
    assert 10 <= machine.time.wakeups - before <= 20


def test_when_there_is_no_thread_to_take_over_the_round_waits_and_is_tried_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = machine.start()
    machine.time.run(2)
    hang = machine.hang(machine.second)

    def none_left(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    machine.time.run(3)
    assert machine.seconds() == [1, 2]
    monkeypatch.undo()
    machine.time.run(3)
    assert machine.seconds() == [1, 2, 3, 6, 7, 8]
    machine.time.apart(hang.release)
    machine.time.run(3)
    assert pipeline.statuses()[1].state is CollectorState.OK


def test_a_collector_that_flaps_does_not_fill_the_log(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    def flap() -> None:
        if len(machine.first.read_wall_ns) % 4 == 0:
            raise OSError("now and then")

    caplog.set_level("INFO")
    machine.first.on_read = flap
    machine.start()
    machine.time.run(100)
    assert machine.status("first").failures > 20
    repeats = [record for record in caplog.records if getattr(record, "is_repeat", False)]
    assert len(caplog.records) - len(repeats) == 2
    # Each time is kept for the status, with the words of the first.
    assert len(repeats) == machine.status("first").failures - 1
    assert {record.getMessage() for record in repeats} == {"first failed: OSError: now and then"}


def test_stop_does_not_wait_for_one_that_hangs(machine: Machine) -> None:
    """The stuck thread ends with the process; the worker and the watchdog end now."""
    pipeline = machine.start()
    machine.time.run(2)
    machine.hang(machine.second)
    machine.time.run(3)
    assert pipeline.stop(5)
    made = len(machine.records)
    assert machine.time.monotonic_ns() > 0
    assert len(machine.records) == made


def test_stop_while_a_round_is_held_up_sends_no_half_record(machine: Machine) -> None:
    pipeline = machine.start()
    machine.time.run(2)
    machine.hang(machine.second)
    machine.time.run(1)
    made = len(machine.records)
    assert not pipeline.stop(0), "the worker is in the read"
    machine.hangs[0].release()
    assert pipeline.stop(5)
    assert len(machine.records) == made


def test_a_destination_that_raises_does_not_stop_sampling(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(record: Record) -> None:
        raise RuntimeError("no room")

    pipeline = machine.start()
    machine.deliver = refuse
    machine.time.run(2)
    machine.deliver = machine.records.append
    machine.time.run(2)
    assert machine.seconds() == [3, 4]
    assert pipeline.records == 4
    assert "a record could not be delivered" in caplog.text


def test_notices_are_kept_for_the_status_and_said_once(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    def say() -> None:
        assert machine.first.context is not None
        machine.first.context.notices.say("eth7", "eth7 has no speed")

    caplog.set_level("INFO")
    machine.first.on_read = say
    machine.start()
    machine.time.run(5)
    assert machine.status("first").notices == ("eth7 has no speed",)
    assert caplog.text.count("eth7 has no speed") == 1


def test_over_the_cpu_budget_the_costliest_collector_is_read_less_often(
    machine: Machine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second collector costs 30 ms a reading: 3 % of a core at 1 s, 0.75 % at 4 s."""

    def expensive() -> None:
        machine.cpu_ns += 30_000_000
        machine.time.spend(0.03)

    monkeypatch.setattr("dynolog.pipeline.collector_run.time.thread_time_ns", lambda: machine.cpu_ns)
    caplog.set_level("INFO")
    machine.second.on_read = expensive
    machine.start(every(1, cpu_budget_pct=1.0))
    machine.time.run(70)
    assert machine.status("second").interval_s == 4
    assert machine.status("second").configured_interval_s == 1
    assert machine.status("first").interval_s == 1
    assert "second is now read every 4 s" in caplog.text
    machine.second.on_read = nothing
    machine.time.run(300)
    assert machine.status("second").interval_s == 1
    assert "second is read every 1 s again" in caplog.text
