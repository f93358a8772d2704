"""Counters of this machine's kernel, beside `perf stat` and beside what the kernel says of a process."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.collectors.perf import PerfCollector
from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_cgroups import perf_cgroup_root
from fakes.collector_context import HostTree
from integration.harness import running_daemon

TESTS = Path(__file__).resolve().parents[1]
_IN_A_NAMESPACE = (
    "mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; "
    'exec "$0" "$1/integration/perf_beside.py"'
)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: counts the whole machine")
@pytest.mark.skipif(not shutil.which("perf"), reason="needs perf (Debian: linux-perf)")
def test_counts_are_those_of_perf_stat_at_the_same_time() -> None:
    """Software events and tracepoints, within 2 %."""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _IN_A_NAMESPACE, sys.executable, str(TESTS)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert set(counts) >= {"context-switches", "page-faults", "sched:sched_switch"}
    for event, (ours, theirs) in counts.items():
        assert theirs > 20_000, f"the work made too few {event} to compare"
        assert ours == pytest.approx(theirs, rel=0.02), event


@contextlib.contextmanager
def a_cgroup() -> Iterator[str]:
    """A new cgroup in the hierarchy that counters follow; its path in it."""
    host = HostFiles("/")
    try:
        root = perf_cgroup_root(host)
    except SourceUnavailable as error:
        pytest.skip(f"needs cgroups: {error}")
    path = f"/dynolog-test-{os.getpid()}"
    directory = host.path(root) + path
    try:
        os.mkdir(directory)
    except OSError as error:
        pytest.skip(f"needs a cgroup hierarchy that can be written: {error}")
    try:
        yield path
    finally:
        os.rmdir(directory)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a cgroup")
def test_a_cgroup_is_counted_by_itself() -> None:
    """Its page faults are those of the only process in it, whatever the rest of the machine does."""
    with a_cgroup() as path:
        flags = {"perf_metrics": "software,dummy", "perf_cgroups": path}
        collector = PerfCollector(HostTree(Path("/")).context(**flags))
        before = collector.read()
        procs = HostFiles("/").path(perf_cgroup_root(HostFiles("/"))) + path + "/cgroup.procs"
        code = (
            f"import mmap, os, resource; open({procs!r}, 'w').write(str(os.getpid()));"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt;"
            "pages = mmap.mmap(-1, 30000 * mmap.PAGESIZE);"
            "[pages.__setitem__(page * mmap.PAGESIZE, 1) for page in range(30000)];"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
        values = collector.compute(before, collector.read(), 1.0)
        faults = int(done.stdout)
        assert faults >= 30_000
        assert values[f"perf_minor_faults.{path}"] == pytest.approx(faults, rel=0.02)
        assert values["perf_minor_faults"] >= values[f"perf_minor_faults.{path}"]  # type: ignore[operator]  # both are numbers
        assert values[f"perf_running_ratio.{path}"] == pytest.approx(1.0)
        before = collector.read()
        idle = collector.compute(before, collector.read(), 1.0)
        assert idle[f"perf_minor_faults.{path}"] == 0
        del collector


def test_what_this_machine_cannot_count_is_one_sentence() -> None:
    """Either hardware counters count here, or the reason is said with what to change."""
    collector = PerfCollector(HostTree(Path("/")).context())
    try:
        before = collector.read()
    except SourceUnavailable as error:
        assert error.reason
        assert error.remedy
        return
    sum(range(100_000))
    assert collector.compute(before, collector.read(), 1.0)["mips"]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: counts the whole machine")
def test_the_daemon_counts_when_told_by_the_originals_flags_and_takes_changes(tmp_path: Path) -> None:
    """Events of the kernel in the kernel's record; what cannot be counted is in the status, and costs nothing else."""
    flag_file = tmp_path / "flags"
    flags = (
        "--enable_perf_monitor\n--perf_monitor_reporting_interval_s=0.4\n--reporting_interval_s=0.2\n--perf_metrics="
    )
    flag_file.write_text(flags + "software,no-such-event\n")
    with running_daemon(tmp_path / "d", f"--flagfile={flag_file}") as daemon:
        record = daemon.wait_for("perf_context_switches")[0]
        assert "cpu_u" in record
        status = next(one for one in daemon.ask("status", "--verbose")["daemon"]["collectors"] if one["name"] == "perf")
        assert (status["state"], status["interval_s"]) == ("ok", 0.4)
        assert any("no-such-event" in notice for notice in status["notices"])
        flag_file.write_text(flags + "page-faults\n")
        os.kill(daemon.pid, signal.SIGHUP)
        daemon.wait_for("perf_events.page-faults")
