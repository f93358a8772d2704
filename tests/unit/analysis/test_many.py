"""Files that are worked on in processes of their own, which may be ended from outside."""

import os
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from dynolog.analysis.many import ProcessLost, map_files
from fakes.file_work import ended_by, in_processes


def test_a_process_that_is_ended_costs_the_file_that_ends_it_again() -> None:
    found = list(map_files(ended_by, ["a", "bad", "c"], processes=2, lost=lambda path: f"lost {path}"))
    assert found == [("a", "a"), ("bad", "lost bad"), ("c", "c")]
    with pytest.raises(ProcessLost, match="bad: the process that read it was ended"):
        list(map_files(ended_by, ["a", "bad"], processes=2))


def test_no_process_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    """However that ended: a job's manager sends signals that cannot be caught."""
    paths = [str(tmp_path / name) for name in ("a", "b")]
    parent = get_context("spawn").Process(target=in_processes, args=(paths,))
    parent.start()
    pids = []
    for path in paths:
        until(partial(os.path.exists, path + ".ready"))
        pids.append(int(Path(path + ".ready").read_text()))
    parent.kill()
    parent.join()
    for pid in pids:
        until(partial(has_ended, pid))


def has_ended(pid: int) -> bool:
    """Also when nobody has asked how: a container may have no init that does."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
