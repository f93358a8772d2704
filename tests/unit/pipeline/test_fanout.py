"""Queues between the pipeline and its exporters."""

import threading
from collections.abc import Iterator

import pytest

from dynolog.model.clock import SystemClock
from dynolog.model.record import Record
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
    one.error = OSError("connection refused")
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
