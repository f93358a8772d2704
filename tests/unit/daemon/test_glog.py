"""The log sink: format, rotation, and disks that are full."""

import gzip
import logging
import os
import re
import time
from pathlib import Path

import pytest

from dynolog.daemon.glog import GlogHandler, GlogSink


def written(sink: GlogSink, path: Path) -> list[str]:
    assert sink.flush(5)
    return path.read_text().splitlines()


def test_a_line_has_the_glog_prefix(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path))
    sink.write("I", "log.py", 37, "Logging : 12 values")
    (line,) = written(sink, path)
    assert re.fullmatch(r"I\d{8} \d\d:\d\d:\d\d\.\d{6} \d+ log\.py:37\] Logging : 12 values", line)
    sink.close()


def test_text_from_outside_cannot_forge_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path))
    sink.write("W", "a.py", 1, "name\nI20260101 00:00:00.000000 1 b.py:1] all is well\r")
    assert len(written(sink, path)) == 1
    sink.close()


def test_text_from_outside_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """Names of sockets, processes and files hold what their owners like."""
    path = tmp_path / "log"
    sink = GlogSink(str(path))
    sink.write("W", "a.py", 1, "socket \x1b[2J\x07\x9b31m\u202e\u2028 \udc80 é")
    (line,) = written(sink, path)
    assert line.endswith(r"socket \x1b[2J\x07\x9b31m\u202e\u2028 \udc80 é")
    sink.close()


def test_lines_below_the_level_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path), minimum_level=1)
    sink.write("I", "a.py", 1, "no")
    sink.write("E", "a.py", 1, "yes")
    assert [line[-3:] for line in written(sink, path)] == ["yes"]
    sink.close()


def test_rotation_keeps_so_many_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path), rotate_bytes=200, keep=2)
    for number in range(12):
        sink.write("I", "a.py", 1, f"{number:02d} " + "x" * 100)
        sink.flush(5)
    sink.close()
    assert sorted(os.listdir(tmp_path)) == ["log", "log.1.gz", "log.2.gz"]
    packed = gzip.decompress((tmp_path / "log.1.gz").read_bytes()).decode().splitlines()
    assert [line.split("] ")[1][:2] for line in packed] == ["10", "11"]


def test_reopen_follows_a_file_that_logrotate_moved(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path))
    sink.write("I", "a.py", 1, "old")
    sink.flush(5)
    path.rename(tmp_path / "log.1")
    sink.reopen()
    sink.flush(5)
    sink.write("I", "a.py", 1, "new")
    assert [line[-3:] for line in written(sink, path)] == ["new"]
    sink.close()


def test_a_full_disk_loses_lines_counts_them_and_says_so_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path))
    real_write = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    sink.write("I", "a.py", 1, "lost 1")
    sink.write("I", "a.py", 1, "lost 2")
    assert sink.flush(5)
    assert sink.lost_lines == 2
    monkeypatch.setattr(os, "write", real_write)
    sink.write("I", "a.py", 1, "back")
    lines = written(sink, path)
    assert "2 log lines were lost: No space left on device" in lines[0]
    assert lines[1].endswith("back")
    sink.close()


def test_a_blocked_pipe_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the other end: the queue fills, the rest is counted, and the writer of lines goes on."""
    read_end, write_end = os.pipe()
    sink = GlogSink()
    monkeypatch.setattr(sink, "_fd", write_end)
    for _ in range(6000):
        sink.write("I", "a.py", 1, "x" * 1000)
    assert sink.lost_lines > 500
    os.close(read_end)  # the blocked write fails, the thread goes on
    sink.flush(5)
    sink.close()
    os.close(write_end)


def test_closing_takes_no_longer_than_it_may_when_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    sink = GlogSink()
    monkeypatch.setattr(sink, "_fd", write_end)
    for _ in range(200):
        sink.write("I", "a.py", 1, "x" * 1000)
    started_s = time.monotonic()
    sink.close(0.5)
    assert time.monotonic() - started_s < 10
    os.close(read_end)
    sink.flush(5)
    os.close(write_end)


def test_a_log_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    sink = GlogSink(str(tmp_path / "missing" / "log"))
    assert "No such file" in sink.last_error
    sink.write("I", "a.py", 1, "x")
    sink.flush(5)
    assert sink.lost_lines == 1
    sink.close()


def test_library_log_records_come_through_with_their_traceback(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path))
    logger = logging.Logger("test")
    logger.addHandler(GlogHandler(sink))
    try:
        raise ValueError("what happened")
    except ValueError:
        logger.exception("it failed")
    (line,) = written(sink, path)
    assert line.startswith("E")
    assert "it failed\\n" in line
    assert "ValueError: what happened" in line
    sink.close()
