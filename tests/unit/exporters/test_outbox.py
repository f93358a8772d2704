"""The queue of a network exporter: bounds, order over memory and disk, and a disk that fills up."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynolog.exporters.delivery.outbox import Outbox
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool import Spool
from dynolog.pipeline.losses import Losses
from fakes.stepped_time import SteppedTime


def payload(number: int, size: int = 100) -> Payload:
    return Payload(body=f"{number:08d}".encode() + bytes(size - 8), records=1)


class Box:
    """An outbox on a stepped clock, in memory or with a spool."""

    def __init__(self, spool: Spool | None = None, records: int = 1000, size: int = 1_000_000) -> None:
        self.time = SteppedTime()
        self.losses = Losses("test", self.time)
        self.box = Outbox("test", self.time, self.losses, max_records=records, max_bytes=size, spool=spool)

    def put(self, *numbers: int, size: int = 100) -> None:
        for number in numbers:
            self.box.put(payload(number, size))

    def drain(self) -> list[int]:
        numbers = []
        while (taken := self.box.take()) is not None:
            numbers.append(int(taken.body[:8]))
            self.box.finish()
        return numbers


class FullDisk(Spool):
    """A spool whose disk can be filled."""

    def __init__(self, directory: Path, max_bytes: int = 1_000_000) -> None:
        super().__init__(str(directory), max_bytes)
        self.is_full = False
        self.syncs = 0

    def sync(self) -> None:
        self.syncs += 1
        super().sync()

    def _write(self, segment, entry: bytes) -> None:  # type: ignore[no-untyped-def]
        if self.is_full:
            raise OSError(28, "No space left on device")
        super()._write(segment, entry)


def test_payloads_leave_in_order_and_the_same_one_until_it_is_finished() -> None:
    box = Box()
    box.put(1, 2, 3)
    assert box.box.take() == box.box.take() == payload(1)
    box.box.give_back()
    assert box.drain() == [1, 2, 3]


@pytest.mark.parametrize("limits", [{"records": 3}, {"size": 300}])
def test_the_oldest_go_when_records_or_bytes_are_too_many_but_not_the_one_in_flight(limits: dict[str, int]) -> None:
    box = Box(**limits)  # type: ignore[arg-type]
    box.put(0)
    assert box.box.take() == payload(0)
    box.put(1, 2, 3, 4, 5)
    assert box.losses.by_reason == {"queue_full": 2}
    assert (box.box.levels.records, box.box.levels.size_bytes) == (4, 400)
    assert box.drain() == [0, 3, 4, 5]
    assert (box.box.levels.records, box.box.levels.size_bytes) == (0, 0)


def test_one_payload_that_is_larger_than_the_queue_costs_only_itself() -> None:
    box = Box(size=300)
    box.put(1, 2)
    box.put(3, size=400)
    assert box.drain() == [1, 2]
    assert box.losses.by_reason == {"queue_full": 1}


def test_losses_are_said_at_most_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(records=1)
    box.put(*range(101))
    assert caplog.text.count("lost records") == 1
    assert "1 because the queue is full" in caplog.text
    box.time.run(61)
    box.put(102)
    assert caplog.text.count("lost records") == 2
    assert "100 because the queue is full" in caplog.text


def test_an_empty_spool_is_on_and_bounds_a_payload_before_anything_was_put(tmp_path: Path) -> None:
    box = Box(spool=Spool(str(tmp_path / "s"), 4000))
    assert box.box.levels.spool == "on"
    box.put(1, size=1001)
    assert (box.drain(), box.losses.total) == ([], 1)


def test_with_a_spool_payloads_are_on_disk_at_once_and_outlast_the_daemon(tmp_path: Path) -> None:
    box = Box(Spool(str(tmp_path), 1_000_000))
    box.put(1, 2, 3)
    assert box.box.levels.records == 0
    assert box.box.levels.spool == "on"
    assert box.box.levels.spool_bytes > 300
    assert box.box.take() == payload(1)
    assert box.box.is_safe
    box.box.finish()
    assert box.box.take() == payload(2)
    # Nothing is closed: the daemon was killed.
    again = Box(Spool(str(tmp_path), 1_000_000))
    again.put(4)
    assert again.drain() == [2, 3, 4]


def test_a_full_disk_turns_spooling_off_and_room_turns_it_on_again_in_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(tmp_path)
    box = Box(disk)
    with caplog.at_level("INFO"):
        box.put(0, 1)
        disk.is_full = True
        box.put(2, 3, 4)
        assert box.box.levels.spool == "off: No space left on device"
        assert box.box.levels.records == 3
        assert caplog.text.count("spooling is off") == 1
        disk.is_full = False
        box.put(5)
        assert box.box.levels.records == 4  # the disk is left alone for a while
        box.time.run(11)
        box.put(6)
        assert box.box.levels.records == 0
        assert box.box.levels.spool == "on"
        assert "spooling is on again" in caplog.text
    assert box.box.is_safe
    assert box.drain() == list(range(7))
    assert box.losses.total == 0


def test_what_is_in_flight_from_memory_goes_to_disk_before_the_rest(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    disk.is_full = True
    box = Box(disk)
    box.put(0, 1)
    assert box.box.take() == payload(0)
    disk.is_full = False
    box.time.run(11)
    box.put(2)
    assert box.box.is_safe
    box.box.give_back()
    again = Box(Spool(str(tmp_path), 1_000_000))
    assert again.drain() == [0, 1, 2]


def test_a_full_spool_counts_what_it_drops_and_one_in_flight_by_its_fate(tmp_path: Path) -> None:
    box = Box(Spool(str(tmp_path), 1_000_000), size=10_000_000)
    box.put(0, size=1000)
    assert box.box.take() == payload(0, 1000)
    box.put(*range(1, 1500), size=1000)
    dropped = box.losses.by_reason["spool_full"]
    box.box.give_back()
    assert box.losses.by_reason["spool_full"] == dropped + 1
    left = box.drain()
    assert len(left) + dropped + 1 == 1500
    assert left == list(range(1500 - len(left), 1500))


def test_closing_tries_the_disk_once_more(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    disk.is_full = True
    box = Box(disk)
    box.put(1, 2)
    box.box.take()
    disk.is_full = False
    box.box.close()
    assert box.losses.total == 0
    assert Box(Spool(str(tmp_path), 1_000_000)).drain() == [1, 2]


def test_closing_keeps_what_is_on_disk_and_counts_what_is_not(tmp_path: Path) -> None:
    box = Box()
    box.put(1, 2)
    box.box.take()
    box.box.close()
    assert box.losses.by_reason == {"shutdown": 2}
    spooled = Box(Spool(str(tmp_path), 1_000_000))
    spooled.put(1, 2)
    spooled.box.take()
    spooled.box.close()
    assert spooled.losses.total == 0
    assert Box(Spool(str(tmp_path), 1_000_000)).drain() == [1, 2]


def test_the_disk_is_synced_once_a_second_and_only_while_something_waits(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    box = Box(disk)
    for number in range(100):
        box.put(number)
        assert box.drain() == [number]
        box.time.run(0.5)
    assert disk.syncs == 0
    box.put(100)
    box.box.take()
    box.box.give_back()
    for number in range(101, 121):
        box.put(number)
        box.time.run(0.1)
    assert 2 <= disk.syncs <= 3
    box.time.run(1.1)
    box.box.sync()
    assert 3 <= disk.syncs <= 4


def test_what_waits_behind_an_attempt_that_hangs_is_synced(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    box = Box(disk)
    box.put(1)
    box.box.take()
    box.put(2)
    assert disk.syncs == 0
    box.time.run(1.5)
    box.put(3)
    assert disk.syncs == 1


def test_a_disk_that_fails_to_sync_turns_spooling_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_file: int) -> None:
        raise OSError(5, "Input/output error")

    box = Box(Spool(str(tmp_path), 1_000_000))
    box.put(1)
    box.box.take()
    box.time.run(1.5)
    monkeypatch.setattr("os.fdatasync", fail)
    box.put(2)
    assert box.box.levels.spool == "off: Input/output error"
    assert box.drain() == [1, 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["put", "take", "finish", "back", "full", "room", "wait"]), max_size=60))
def test_whatever_happens_order_holds_and_every_record_is_sent_or_counted_or_waits(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    disk = FullDisk(tmp_path_factory.mktemp("spool"))
    box = Box(disk, records=4)
    sent: list[int] = []
    number, flying = 0, None
    for step in steps:
        if step == "put":
            box.put(number)
            number += 1
        elif step == "take":
            flying = box.box.take()
        elif step == "finish" and flying is not None:
            sent.append(int(flying.body[:8]))
            box.box.finish()
            flying = None
        elif step == "back":
            box.box.give_back()
        elif step in ("full", "room"):
            disk.is_full = step == "full"
        elif step == "wait":
            box.time.run(11)
    sent += box.drain()
    assert sent == sorted(set(sent))
    assert len(sent) + box.losses.total == number
