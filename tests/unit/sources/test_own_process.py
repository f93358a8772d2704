"""What this process costs, against the kernel's other words and psutil's."""

import os
import threading
from pathlib import Path

import psutil
import pytest

from dynolog.sources.own_process import OwnProcessReader, own_cpu_ns

PAGE = os.sysconf("SC_PAGE_SIZE")


def test_it_agrees_with_psutil() -> None:
    process = psutil.Process()
    own = OwnProcessReader().read()
    assert own.rss_bytes == pytest.approx(process.memory_info().rss, rel=0.05)
    # Libraries of other tests may have threads that Python does not know.
    assert own.threads == process.num_threads() >= threading.active_count()
    assert own.open_files is not None
    assert abs(own.open_files - process.num_fds()) <= 2
    times = process.cpu_times()
    busy = times.user + times.system + times.children_user + times.children_system
    assert own.cpu_ns / 1e9 == pytest.approx(busy, abs=0.1)


def test_cpu_time_grows_with_work() -> None:
    before = own_cpu_ns()
    while own_cpu_ns() - before < 5_000_000:
        sum(range(10_000))


def test_a_name_with_spaces_and_brackets_is_no_hindrance(tmp_path: Path) -> None:
    """D17: the fields are counted from the last bracket."""
    fields = ["S", *["0"] * 16, "7", "0", "0", "0", "25", *["0"] * 28]
    (tmp_path / "stat").write_text(f"4242 (a) b (2) .sh) {' '.join(fields)}\n")
    (tmp_path / "fd").mkdir()
    own = OwnProcessReader(str(tmp_path)).read()
    assert (own.threads, own.rss_bytes) == (7, 25 * PAGE)


def test_without_proc_only_what_proc_tells_is_missing(tmp_path: Path) -> None:
    own = OwnProcessReader(str(tmp_path / "nothing")).read()
    assert (own.rss_bytes, own.threads, own.open_files) == (None, None, None)
    assert own.cpu_ns > 0
