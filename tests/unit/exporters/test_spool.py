"""The spool: order, bounds, restarts, damage, full disks, and one daemon a directory."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool import Spool
from dynolog.model.errors import AddressInUse, FlagError

MB = 1_000_000


def payload(number: int, size: int = 100) -> Payload:
    return Payload(body=f"{number:08d}".encode() + bytes(size - 8), records=1)


def number_of(found: Payload) -> int:
    return int(found.body[:8])


def drain(spool: Spool) -> list[int]:
    numbers = []
    while (entry := spool.first()) is not None:
        numbers.append(number_of(entry.payload))
        spool.sent(entry)
    return numbers


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.spool"))


def test_entries_leave_in_order_and_their_files_with_them(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), MB)
    assert spool.first() is None
    for number in range(2000):
        spool.append(payload(number, 300))
    assert len(segments(tmp_path)) > 3
    assert drain(spool) == list(range(2000))
    assert len(segments(tmp_path)) <= 1
    spool.close()
    assert segments(tmp_path) == []
    assert spool.size_bytes == 0


def test_what_was_not_sent_is_there_after_a_restart_and_what_was_is_not(tmp_path: Path) -> None:
    first = Spool(str(tmp_path), MB)
    for number in range(1000):
        first.append(payload(number, 300))
    for _ in range(600):
        entry = first.first()
        assert entry is not None
        first.sent(entry)
    first.close()
    second = Spool(str(tmp_path), MB)
    assert second
    assert second.size_bytes == sum(path.stat().st_size for path in segments(tmp_path))
    second.append(payload(1000))
    assert drain(second) == list(range(600, 1001))
    second.close()


def test_the_oldest_segment_is_dropped_when_there_is_no_room(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), MB)
    for number in range(2000):
        spool.append(payload(number, 1000))
        assert sum(path.stat().st_size for path in segments(tmp_path)) <= MB
    left = drain(spool)
    assert left == list(range(2000 - len(left), 2000))
    assert len(left) > 700
    assert spool.dropped_records == 2000 - len(left)
    spool.close()


def test_a_segment_of_an_earlier_daemon_is_counted_when_it_is_dropped(tmp_path: Path) -> None:
    first = Spool(str(tmp_path), MB)
    for number in range(300):
        first.append(payload(number, 1000))
    first.close()
    second = Spool(str(tmp_path), MB)
    for number in range(300, 1500):
        second.append(payload(number, 1000))
    left = drain(second)
    assert second.dropped_records + len(left) == 1500
    second.close()


def test_an_entry_in_flight_may_be_dropped_and_finished_then(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), MB)
    spool.append(payload(0, 1000))
    entry = spool.first()
    assert entry is not None
    for number in range(1, 1500):
        spool.append(payload(number, 1000))
    assert not spool.holds(entry)
    spool.sent(entry)
    assert drain(spool)[-1] == 1499
    spool.close()


def test_damage_on_disk_costs_only_what_it_hits(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), MB)
    for number in range(400):
        spool.append(payload(number, 1000))
    spool.close()
    first, second, third = segments(tmp_path)[:3]
    with first.open("r+b") as file:
        file.seek(5000)
        file.write(b"\xde\xad")
    os.truncate(second, second.stat().st_size - 10)
    os.chmod(third, 0o600)
    third.write_bytes(b"")
    again = Spool(str(tmp_path), MB)
    left = drain(again)
    assert left == sorted(set(left))
    lost_in_third = 122
    assert 400 - len(left) - 2 == pytest.approx(lost_in_third, abs=3)
    assert again.damaged_records >= 2
    again.close()


def test_a_segment_that_somebody_deleted_costs_only_itself(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), MB)
    for number in range(400):
        spool.append(payload(number, 1000))
    spool.close()
    again = Spool(str(tmp_path), MB)
    segments(tmp_path)[1].unlink()
    left = drain(again)
    assert left[0] == 0
    assert left[-1] == 399
    assert again.damaged_records >= 1
    again.close()


def test_a_healthy_destination_leaves_little_on_disk(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), 100 * MB)
    for number in range(1000):
        spool.append(payload(number, 1000))
        assert drain(spool) == [number]
    assert spool.size_bytes < 70_000
    spool.close()


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    spool = Spool(str(tmp_path), MB)
    spool.append(payload(1))
    assert drain(spool) == [1]
    spool.close()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_files_are_for_the_daemon_alone(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "a" / "b"), MB)
    spool.append(payload(1))
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert segments(tmp_path / "a" / "b")[0].stat().st_mode & 0o777 == 0o600
    spool.close()


def test_a_directory_that_cannot_be_made_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FlagError, match="--spool_dir"):
        Spool(str(tmp_path / "file" / "spool"), MB)


HOLD = """
import sys, time
from dynolog.exporters.delivery.spool import Spool
spool = Spool(sys.argv[1], 1000000)
print("held", flush=True)
sys.stdin.read()
"""


def test_two_daemons_do_not_share_a_directory(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(AddressInUse, match="another dynolog"):
        Spool(str(tmp_path), MB)
    other.kill()
    other.wait(10)
    other.stdin.close()
    other.stdout.close()
    Spool(str(tmp_path), MB).close()


def test_a_failed_write_leaves_the_segment_whole(tmp_path: Path) -> None:
    """With RLIMIT_FSIZE as the full disk."""
    spool = Spool(str(tmp_path), MB)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_500, hard))
    try:
        written = 0
        with pytest.raises(OSError, match="File too large"):
            for number in range(100):
                spool.append(payload(number, 1000))
                written += 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert written == 10
    assert segments(tmp_path)[0].stat().st_size == spool.size_bytes
    spool.append(payload(10, 1000))
    assert drain(spool) == list(range(11))
    assert spool.damaged_records == 0
    spool.close()


WRITE = """
import sys
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool import Spool
spool = Spool(sys.argv[1], 20_000_000)
number = int(sys.argv[2])
while True:
    # Larger than a page, so that the kill may fall inside a write.
    spool.append(Payload(body=f"{number:08d}".encode() + bytes(9000), records=1))
    print(number, flush=True)
    number += 1
    if number % 3 == 0:
        entry = spool.first()
        spool.sent(entry)
        print("sent", int(entry.payload.body[:8]), flush=True)
"""


def test_a_writer_killed_at_any_moment_loses_nothing_it_had_written(tmp_path: Path) -> None:
    written: list[int] = []
    sent: list[int] = []
    for turn in range(8):
        start = written[-1] + 2 if written else 0
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), str(start)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(20 + 37 * turn)]
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait(10)
        writer.stdout.close()
        whole = [line.split() for line in lines if line.endswith("\n")]
        sent += [int(words[1]) for words in whole if words[0] == "sent"]
        written += [int(words[0]) for words in whole if words[0] != "sent"]
    spool = Spool(str(tmp_path), 20 * MB)
    left = drain(spool)
    spool.close()
    assert left == sorted(set(left))
    # Of each turn the entry whose line was not read may be there too, or be marked as sent already.
    assert len(set(written) - set(left) - set(sent)) <= 8
    assert set(left) & set(sent) == set()
    assert set(left) - set(written) <= {number + 1 for number in written}
