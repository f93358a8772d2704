"""Queues between the pipeline and its exporters."""

import threading
from collections.abc import Iterator

import msgspec
import pytest

from dynolog.model.clock import SystemClock
from dynolog.model.record import Record
from dynolog.model.status import ExporterState
from dynolog.pipeline.delivery import Exporter, Progress
from dynolog.pipeline.fanout import Fanout
from fakes.recording_exporter import RecordingExporter
from fakes.stepped_time import SteppedTime


def record(number: int) -> Record:
    return Record(wall_ns=number, source="kernel", values={"n": number})


@pytest.fixture
def one() -> RecordingExporter:
    return RecordingExporter()


@pytest.fixture
def two() -> Iterator[RecordingExporter]:
    exporter = RecordingExporter()
    yield exporter
    exporter.gate.set()


def test_every_exporter_gets_every_record_in_order(one: RecordingExporter, two: RecordingExporter) -> None:
    fanout = Fanout([("one", one), ("two", two)], SystemClock())
    for number in range(20):
        fanout.put(record(number))
    assert fanout.close(5)
    assert [entry.wall_ns for entry in one.records] == list(range(20))
    assert [entry.wall_ns for entry in two.records] == list(range(20))
    assert [(status.name, status.sent, status.dropped, status.queued) for status in fanout.statuses()] == [
        ("one", 20, 0, 0),
        ("two", 20, 0, 0),
    ]
    assert one.closed.is_set()


def test_a_blocked_exporter_delays_nobody_and_loses_its_oldest_records(
    one: RecordingExporter, two: RecordingExporter
) -> None:
    two.gate.clear()
    fanout = Fanout([("one", one), ("two", two)], SystemClock(), queue_records=3)
    fanout.put(record(0))
    assert two.entered.wait(10)
    for number in range(1, 11):
        fanout.put(record(number))
        one.wait_for(number + 1)
    blocked = fanout.statuses()[1]
    assert (blocked.sent, blocked.dropped, blocked.queued) == (0, 7, 4)
    two.gate.set()
    assert fanout.close(5)
    assert [entry.wall_ns for entry in two.records] == [0, 8, 9, 10]
    assert (fanout.statuses()[1].sent, fanout.statuses()[1].dropped) == (4, 7)


def test_a_refused_batch_is_counted_and_said_once(one: RecordingExporter, caplog: pytest.LogCaptureFixture) -> None:
    one.error = OSError(111, "connection refused")
    fanout = Fanout([("one", one)], SystemClock())
    for number in range(3):
        fanout.put(record(number))
        one.wait_for(number + 1)
    assert fanout.close(5)
    status = fanout.statuses()[0]
    assert (status.sent, status.dropped, status.error, status.last_success_wall_ns) == (0, 3, "connection refused", 0)
    assert caplog.text.count("connection refused") == 1


def test_the_next_success_clears_the_error_and_is_stamped(one: RecordingExporter) -> None:
    time = SteppedTime()
    one.error = OSError("full")
    fanout = Fanout([("one", one)], time)
    fanout.put(record(1))
    one.wait_for(1)
    one.error = None
    fanout.put(record(2))
    assert fanout.close(5)
    status = fanout.statuses()[0]
    assert (status.sent, status.dropped, status.error) in ((1, 1, ""), (2, 0, ""))
    assert status.last_success_wall_ns == time.wall_ns()


def test_close_gives_up_in_time_and_counts_what_was_left(one: RecordingExporter, two: RecordingExporter) -> None:
    two.gate.clear()
    fanout = Fanout([("two", two), ("one", one)], SystemClock())
    fanout.put(record(0))
    assert two.entered.wait(10)
    for number in range(1, 4):
        fanout.put(record(number))
    assert not fanout.close(0.05)
    assert fanout.statuses()[0].dropped == 4
    two.gate.set()
    assert two.closed.wait(10)
    assert fanout.statuses()[0].dropped == 4
    assert fanout.statuses()[0].sent == 0


def test_an_exporter_without_records_has_no_thread_until_it_is_closed(one: RecordingExporter) -> None:
    before = threading.active_count()
    fanout = Fanout([("quiet", one)], SystemClock())
    assert threading.active_count() == before
    assert fanout.close(5)
    assert one.closed.is_set()


def test_a_record_after_the_close_is_counted_as_dropped(one: RecordingExporter) -> None:
    fanout = Fanout([("one", one)], SystemClock())
    assert fanout.close(5)
    fanout.put(record(1))
    assert fanout.statuses()[0].dropped == 1


def test_a_long_export_is_said_in_the_status(two: RecordingExporter) -> None:
    time = SteppedTime()
    two.gate.clear()
    fanout = Fanout([("two", two)], time)
    fanout.put(record(1))
    assert two.entered.wait(10)
    time.run(42)
    assert fanout.statuses()[0].error == "has been blocked for 42 s"
    two.gate.set()
    assert fanout.close(5)
    assert fanout.statuses()[0].error == ""


class QueueingExporter(RecordingExporter):
    """One that takes records over at once, and tells its own counters."""

    def __init__(self, closes_at_once: bool = True) -> None:
        super().__init__()
        self.ends_by_ns = 0
        self.closes_at_once = closes_at_once
        self.told = Progress(
            sent=3,
            dropped_by={"refused": 2, "queue_full": 1},
            queued=5,
            queued_bytes=600,
            last_success_wall_ns=77,
            state=ExporterState.RETRYING,
            error="HTTP 503",
            spool="on",
            spool_bytes=9000,
            retries=4,
            next_try_s=1.5,
        )

    def progress(self) -> Progress:
        return self.told

    def end_by(self, monotonic_ns: int) -> None:
        self.ends_by_ns = monotonic_ns

    def close(self) -> None:
        if not self.closes_at_once:
            assert self.gate.wait(30)
        super().close()


def test_counters_of_an_exporter_with_its_own_queue_are_those_of_both_queues() -> None:
    queueing = QueueingExporter()
    queueing.gate.clear()
    fanout = Fanout([("net", queueing)], SystemClock(), queue_records=2)
    fanout.put(record(0))
    assert queueing.entered.wait(10)
    for number in range(1, 5):
        fanout.put(record(number))
    status = fanout.statuses()[0]
    assert (status.sent, status.queued, status.state, status.error) == (3, 8, ExporterState.RETRYING, "HTTP 503")
    assert status.dropped_by == {"refused": 2, "queue_full": 3}
    assert status.dropped == 5
    assert (status.spool, status.spool_bytes, status.retries, status.next_try_s) == ("on", 9000, 4, 1.5)
    assert status.last_success_wall_ns == 77
    assert status.queued_bytes > 600
    queueing.gate.set()
    assert fanout.close(5)


def test_an_exporter_with_its_own_queue_may_take_longer_to_close_than_the_others(two: RecordingExporter) -> None:
    queueing = QueueingExporter(closes_at_once=False)
    queueing.gate.clear()
    two.gate.clear()
    time = SystemClock()
    fanout = Fanout([("net", queueing), ("two", two)], time)
    fanout.put(record(0))
    before_ns = time.monotonic_ns()
    threading.Timer(0.4, queueing.gate.set).start()
    assert not fanout.close(0.05, 10.0)
    assert queueing.closed.is_set()
    assert not two.closed.is_set()
    assert 9.0 < (queueing.ends_by_ns - before_ns) / 1e9 < 10.0


def test_close_says_when_an_exporter_had_to_leave_records_behind() -> None:
    queueing = QueueingExporter()
    queueing.told = msgspec.structs.replace(queueing.told, dropped_by={"shutdown": 2})
    assert not Fanout([("net", queueing)], SystemClock()).close(5)


def test_a_queue_of_large_records_is_bounded_in_bytes(two: RecordingExporter) -> None:
    two.gate.clear()
    fanout = Fanout([("two", two)], SystemClock(), queue_bytes=1_000_000)
    large = Record(wall_ns=1, source="kernel", values={f"k{number}": number for number in range(2000)})
    fanout.put(large)
    assert two.entered.wait(10)
    for _ in range(20):
        fanout.put(large)
    status = fanout.statuses()[0]
    assert status.queued_bytes <= 1_000_000
    assert status.queued == 1 + 5
    assert status.dropped_by == {"queue_full": 15}
    two.gate.set()
    assert fanout.close(5)
    assert fanout.statuses()[0].queued_bytes == 0


def test_one_record_larger_than_the_queue_is_still_delivered(one: RecordingExporter) -> None:
    fanout = Fanout([("one", one)], SystemClock(), queue_bytes=10)
    fanout.put(record(1))
    assert fanout.close(5)
    assert fanout.statuses()[0].sent == 1


def test_an_exporter_is_replaced_and_its_successor_misses_nothing(
    one: RecordingExporter, two: RecordingExporter
) -> None:
    """What comes between the two waits; what both counted is counted together."""
    fanout = Fanout([("one", one)], SystemClock())
    fanout.put(record(0))
    assert fanout.take_out("one", 10, 10)
    assert one.closed.is_set()
    fanout.put(record(1))
    assert fanout.statuses() == ()
    fanout.put_in("one", two)
    fanout.put(record(2))
    assert fanout.close(10)
    assert [entry.wall_ns for entry in one.records] == [0]
    assert [entry.wall_ns for entry in two.records] == [1, 2]
    assert [(status.name, status.sent, status.dropped) for status in fanout.statuses()] == [("one", 3, 0)]


class Summing(RecordingExporter):
    """Gives a running total of its records; `total` before its first record is what it took over."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Exporter | None = None

    def take_over(self, before: Exporter) -> None:
        assert not self.records
        self.before = before


def test_a_successor_is_given_its_predecessor_once_that_has_closed() -> None:
    first, second, third = Summing(), Summing(), Summing()
    fanout = Fanout([("one", first)], SystemClock())
    fanout.put(record(0))
    assert fanout.take_out("one", 10, 10)
    fanout.put(record(1))
    fanout.put_in("one", second)
    assert second.before is first
    second.wait_for(1)
    # One that was off meanwhile begins anew.
    assert fanout.take_out("one", 10, 10)
    fanout.forget("one")
    fanout.put_in("one", third)
    assert third.before is None
    assert fanout.close(10)


def test_the_totals_of_one_that_hangs_are_left_to_it() -> None:
    first, second = Summing(), Summing()
    first.gate.clear()
    fanout = Fanout([("one", first)], SystemClock())
    fanout.put(record(0))
    assert first.entered.wait(10)
    assert not fanout.take_out("one", 0.05, 0.05)
    fanout.put_in("one", second)
    assert second.before is None
    first.gate.set()
    assert fanout.close(10)


def test_what_an_exporter_could_not_deliver_before_it_was_taken_out_is_counted_as_dropped(
    one: RecordingExporter, two: RecordingExporter
) -> None:
    two.gate.clear()
    fanout = Fanout([("one", two)], SystemClock())
    fanout.put(record(0))
    assert two.entered.wait(10)
    fanout.put(record(1))
    assert not fanout.take_out("one", 0.05, 0.05)
    fanout.put_in("one", one)
    fanout.put(record(2))
    one.wait_for(1)
    two.gate.set()
    assert fanout.close(10)
    (status,) = fanout.statuses()
    assert (status.sent, status.dropped, status.dropped_by) == (1, 2, {"shutdown": 2})


def test_nothing_is_kept_for_one_that_does_not_come_back(one: RecordingExporter, two: RecordingExporter) -> None:
    fanout = Fanout([("one", one)], SystemClock())
    assert fanout.take_out("one", 10, 10)
    fanout.forget("one")
    fanout.put(record(0))
    fanout.put_in("one", two)
    fanout.put(record(1))
    assert fanout.close(10)
    assert [entry.wall_ns for entry in two.records] == [1]
