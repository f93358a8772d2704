"""A file of JSON lines: rotation, full disks, and what a killed daemon leaves."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from dynolog.exporters import zstd
from dynolog.exporters.file import FileExporter, make
from dynolog.exporters.file_rotation import Rotation
from dynolog.exporters.forms.json_line import JsonLines
from dynolog.model.errors import FlagError
from dynolog.model.record import Record
from fakes.exporter_context import exporter_context, record


def numbered(number: int) -> Record:
    return record({"n": number, "padding": "x" * 100})


def numbers(path: Path) -> list[int]:
    """The records of a file; each line must be whole."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert data == b"" or data.endswith(b"\n")
    return [json.loads(line)["n"] for line in data.splitlines()]


def exporter(path: Path, rotate_bytes: int = 0, keep: int = 7, *, compress: bool = False) -> FileExporter:
    return FileExporter(str(path), JsonLines("gpu17"), Rotation(str(path), keep, compress=compress), rotate_bytes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def test_a_line_a_record_appended_to_what_is_there(path: Path) -> None:
    for number in (1, 2):
        sink = exporter(path)
        sink.export([numbered(number)])
        sink.close()
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert first == {
        "time": "2022-07-21T23:42:34.141104000Z",
        "host": "gpu17",
        "source": "kernel",
        "n": 1,
        "padding": "x" * 100,
    }
    assert second["n"] == 2


@pytest.mark.parametrize("compress", [False, True])
def test_rotation_keeps_so_many_and_every_record_once(path: Path, compress: bool) -> None:
    sink = exporter(path, rotate_bytes=1000, keep=2, compress=compress)
    for number in range(20):
        sink.export([numbered(number)])
    sink.close()
    suffix = ".zst" if compress else ""
    assert sorted(os.listdir(path.parent)) == ["metrics.jsonl", f"metrics.jsonl.1{suffix}", f"metrics.jsonl.2{suffix}"]
    kept = [numbers(path.with_name(path.name + end)) for end in (f".2{suffix}", f".1{suffix}", "")]
    assert [number for part in kept for number in part] == list(range(20 - sum(map(len, kept)), 20))
    assert all(len(part) > 1 for part in kept[:2])


def test_old_files_made_under_other_flags_move_and_go_too(path: Path) -> None:
    for name in (".1.zst", ".2"):
        path.with_name(path.name + name).write_text(name)
    sink = exporter(path, rotate_bytes=1, keep=2)
    sink.export([numbered(1)])
    assert sorted(os.listdir(path.parent)) == ["metrics.jsonl", "metrics.jsonl.1", "metrics.jsonl.2.zst"]
    assert path.with_name("metrics.jsonl.2.zst").read_text() == ".1.zst"
    sink.close()


def test_the_name_is_there_at_every_moment_of_a_rotation(path: Path) -> None:
    """F04: a reader that opens the file finds whole lines, never nothing."""
    sink = exporter(path, rotate_bytes=1, keep=2)
    sink.export([numbered(0)])
    missing: list[str] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                numbers(path)
            except FileNotFoundError as error:
                missing.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        sink.export([numbered(number)])
    stop.set()
    reader.join()
    sink.close()
    assert missing == []


def test_a_file_that_logrotate_moved_is_followed_without_a_signal(path: Path) -> None:
    sink = exporter(path)
    sink.export([numbered(1)])
    moved = path.with_name("moved")
    path.rename(moved)
    sink.export([numbered(2)])
    moved.rename(path.with_name("older"))
    sink.export([numbered(3)])
    sink.close()
    assert (numbers(path.with_name("older")), numbers(path)) == ([1], [2, 3])


def test_a_full_disk_loses_whole_records_says_so_and_recovers(path: Path) -> None:
    """RLIMIT_FSIZE stands for the disk's end: a write is cut in the middle of a line."""
    code = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tests_of_file import exporter, numbered
from pathlib import Path
sink = exporter(Path({str(path)!r}))
for number in range(8):
    resource.setrlimit(resource.RLIMIT_FSIZE, (450 if number < 6 else 10**6, resource.RLIM_INFINITY))
    try:
        sink.export([numbered(number)])
    except OSError as error:
        print(number, error.errno)
"""
    done = run_with_this_module(code)
    assert done == ["2 27", "3 27", "4 27", "5 27"]
    assert numbers(path) == [0, 1, 6, 7]


def run_with_this_module(code: str) -> list[str]:
    """Run code in a process of its own, where this file is `tests_of_file`."""
    loader = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('tests_of_file', {__file__!r})\n"
        "module = sys.modules['tests_of_file'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", loader + code], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


def test_a_device_that_is_full_is_an_error_and_no_end(path: Path) -> None:
    sink = exporter(Path("/dev/full"))
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            sink.export([numbered(1)])
    sink.close()


def test_a_directory_that_goes_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "mount" / "metrics.jsonl"
    sink = exporter(path)
    with pytest.raises(FileNotFoundError):
        sink.export([numbered(1)])
    path.parent.mkdir()
    sink.export([numbered(2)])
    sink.close()
    assert numbers(path) == [2]


def test_a_pipe_without_a_reader_holds_nobody_up(path: Path) -> None:
    os.mkfifo(path)
    sink = exporter(path, rotate_bytes=1)
    for _ in range(2000):
        try:
            sink.export([numbered(1)])
        except BlockingIOError:
            break
    else:
        pytest.fail("a pipe took 2000 records")
    sink.close()
    assert os.listdir(path.parent) == ["metrics.jsonl"]


@pytest.mark.parametrize(
    ("torn", "left"),
    [
        (b'{"time":"2026-01-01T00:00:00.000000000Z","n":', b""),
        (b'{"ti', b""),
        (b"somebody else's", b"somebody else's\n"),
    ],
)
def test_a_torn_last_line_spoils_no_record(path: Path, torn: bytes, left: bytes) -> None:
    """A daemon that was killed while it wrote; what others wrote is only ended."""
    for before in (b"", b'{"n":1}\n'):
        path.write_bytes(before + torn)
        sink = exporter(path)
        sink.export([numbered(2)])
        sink.close()
        assert path.read_bytes().startswith(before + left + b'{"time":"2022-07-21')


@pytest.mark.parametrize("stop_at", ["link", "rename", "fsync"])
def test_a_daemon_killed_while_it_rotates_leaves_every_record_once(path: Path, stop_at: str) -> None:
    code = f"""
import os, signal
from tests_of_file import exporter, numbered
from pathlib import Path
sink = exporter(Path({str(path)!r}), rotate_bytes=500)
real = os.{stop_at}
def killed(*arguments, **options):
    real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
os.{stop_at} = killed
for number in range(10):
    sink.export([numbered(number)])
    print(number, flush=True)
"""
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run_with_this_module(code)
    assert raised.value.returncode == -signal.SIGKILL
    sink = exporter(path, rotate_bytes=500)
    sink.export([numbered(100)])
    sink.export([numbered(101)])
    sink.close()
    names = sorted(os.listdir(path.parent), reverse=True)
    assert not [name for name in names if name.endswith((".new", ".tmp"))]
    assert [number for name in names for number in numbers(path.with_name(name))] == [0, 1, 2, 100, 101]


def test_a_rotation_that_fails_loses_nothing_and_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    sink = exporter(path, rotate_bytes=500)
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        for number in range(4):
            sink.export([numbered(number)])
    assert numbers(path) == [0, 1, 2, 3]
    assert caplog.text.count("No space left on device") == 1
    for number in range(4, 7):
        sink.export([numbered(number)])
    sink.close()
    assert numbers(path.with_name("metrics.jsonl.1")) == [0, 1, 2, 3, 4, 5]
    assert numbers(path) == [6]


def test_a_compression_that_fails_leaves_the_plain_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Full:
        def compress(self, data: bytes, /) -> bytes:
            raise OSError(28, "No space left on device")

        def flush(self) -> bytes:
            return b""

    sink = exporter(path, rotate_bytes=1, compress=True)
    monkeypatch.setattr("dynolog.exporters.file_rotation.new_compressor", lambda _flag: Full())
    with caplog.at_level(logging.WARNING):
        sink.export([numbered(1)])
    sink.close()
    assert "No space left" in caplog.text
    assert sorted(os.listdir(path.parent)) == ["metrics.jsonl", "metrics.jsonl.1"]
    assert numbers(path.with_name("metrics.jsonl.1")) == [1]


def test_flags_that_cannot_be_used_end_the_start(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file_path, sentence in (
        ("", "--file_path=PATH"),
        (str(path.parent / "no" / "x"), "is not there"),
        (str(path.parent), "is a directory"),
    ):
        with pytest.raises(FlagError, match=sentence):
            make(exporter_context(use_file=True, file_path=file_path))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(FlagError, match=r"pip install 'dynolog\[zstd\]'"):
        zstd.new_compressor("file_compress=zstd")
