"""A file is put in place whole, or not at all."""

import os
from pathlib import Path

import pytest

from dynolog.fleet.whole_file import written_whole


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(b"old")
    with written_whole(str(path)) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), written_whole(str(tmp_path / "manifest.json")) as file:
        file.write(b"half")
        raise ValueError("no")
    assert os.listdir(tmp_path) == []


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    """Root that names /dev/full as an output must not replace it by a file."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path):
        with pytest.raises(OSError, match="no regular file"), written_whole(str(path)):
            pytest.fail("it was opened")
    assert fifo.is_fifo()
    assert os.listdir(tmp_path) == ["fifo"]
