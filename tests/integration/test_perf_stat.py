"""`dyno perf` on this machine's kernel, beside `perf` from the same kernel's tools."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.sources.host_files import HostFiles
from dynolog.sources.pmu_devices import discover
from dynolog.sources.pmu_events import parse_event
from fakes.pmu_trees import TREES
from integration.harness import eventually, needs_root

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf: apt install linux-perf")
DYNO = [sys.executable, "-m", "dynolog.cli.main", "perf"]
WITH_TRACEFS = ["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh"]
EVENTS = "page-faults,minor-faults,context-switches,sched:sched_switch,task-clock"
_INTEL_EVENTS = (
    "cycles LLC-load-misses dTLB-store-misses r01c7 cpu/event=0xa3,umask=0x4,cmask=0x4,inv/ cpu/mem-loads/ instructions:u "
    "uncore_imc_3/cas_count_read/ power/energy-pkg/ cpu/topdown-bad-spec/ cpu/config=0x1c7,config1=0x7/ "
    "uncore_cha_7/event=0x35,umask=0xc816fe01/"
)
_AMD_EVENTS = (
    "cpu/event=0x1a0,umask=0x1e/ amd_df/event=0x1f,umask=0xffe/ amd_umc_3/event=0x0a,rdwrmask=0x2/ branch-misses"
)
_ARM_EVENTS = "armv8_pmuv3_0/stall_slot/ armv8_pmuv3_0/event=0x80c0/ nvidia_scf_pmu_0/cmem_rd_data/"
WORK = """
import mmap, sys, time
print("ready", flush=True)
sys.stdin.readline()
time.sleep(0.1)
for _ in range(500):
    time.sleep(0.0005)
pages = mmap.mmap(-1, 5000 * 4096)
for page in range(5000):
    pages[page * 4096] = 1
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process that waits for a line, makes 5000 page faults and 500 switches and computes for 0.3 s, and waits again."""
    child = subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()
    child.stdin.close()


def counters_open(process: subprocess.Popen[str]) -> int:
    """How many counters a process holds."""
    found = 0
    for file in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a starting interpreter opens and closes files all the time
            found += os.readlink(file) == "anon_inode:[perf_event]"
    return found


@needs_root
@needs_perf
@pytest.mark.root
def test_a_process_is_counted_as_perf_counts_it(worker: subprocess.Popen[str]) -> None:
    """Both at the same time, over the same work: within 2 %."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    options = ["-e", EVENTS]
    ours = subprocess.Popen(
        [*WITH_TRACEFS, *DYNO, "stat", "--json", *options, "--pids", str(worker.pid), "-d", "60"],
        stdout=subprocess.PIPE,
        text=True,
    )
    theirs = subprocess.Popen(
        [*WITH_TRACEFS, "perf", "stat", "-x,", *options, "-p", str(worker.pid)], stderr=subprocess.PIPE, text=True
    )
    for process in (ours, theirs):
        eventually(lambda process=process: counters_open(process) >= 5, what="the counters are open")  # type: ignore[misc]
    worker.stdin.write("go\n")
    assert worker.stdout.readline() == "done\n"
    for process in (ours, theirs):
        process.send_signal(signal.SIGINT)
    reply = json.loads(ours.communicate(timeout=20)[0])
    lines = theirs.communicate(timeout=20)[1].splitlines()
    assert ours.returncode == 0
    expected = {fields[2]: float(fields[0]) for line in lines if len(fields := line.split(",")) > 3}
    expected["task-clock"] *= 1e6  # perf prints ms
    counts = {event["event"]: event["count"] for event in reply["events"]}
    assert set(counts) == set(EVENTS.split(","))
    for name, count in counts.items():
        assert count == pytest.approx(expected[name], rel=0.02), name
    assert counts["page-faults"] >= 5000
    assert counts["context-switches"] >= 500
    assert all(event["running_ratio"] == 1.0 for event in reply["events"])


@needs_root
@pytest.mark.root
def test_the_table_the_machine_and_a_cpu() -> None:
    """Without a word on what to count: the events of the kernel, and those of the processor where it has them."""
    result = subprocess.run(
        [*DYNO, "stat", "-d", "0.3", "--cpus", "0"], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 0, result.stderr
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["event", "count", "a", "second", "counted"]
    clock = next(line for line in lines if line.startswith("task-clock"))
    assert " ns " in clock
    assert "100 %" in clock
    assert re.fullmatch(r"0\.\d{3} s", lines[-1])


def test_counting_ends_with_the_processes() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    ours = subprocess.Popen(
        [*DYNO, "stat", "--json", "-e", "page-faults:u", "--pids", str(child.pid), "-d", "60"],
        stdout=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: counters_open(ours) >= 1, what="the counter is open")
    child.communicate("\n", timeout=20)
    reply = json.loads(ours.communicate(timeout=20)[0])
    assert reply["elapsed_s"] < 30
    assert reply["events"][0]["count"] is not None


def test_children_that_start_later_are_counted_too() -> None:
    """The faults of 2000 pages happen in a child that does not exist when counting begins."""
    touch = "import mmap; m = mmap.mmap(-1, 2000 * 4096); [m.__setitem__(n * 4096, 1) for n in range(2000)]"
    parent = f"import subprocess, sys; input(); subprocess.run([sys.executable, '-c', {touch!r}])"
    child = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, text=True)
    ours = subprocess.Popen(
        [*DYNO, "stat", "--json", "-e", "page-faults:u", "--pids", str(child.pid), "-d", "60"],
        stdout=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: counters_open(ours) >= 1, what="the counter is open")
    child.communicate("\n", timeout=20)
    reply = json.loads(ours.communicate(timeout=20)[0])
    assert reply["events"][0]["count"] > 2000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-e", "cylces"], "did you mean cycles"),
        (["-e", "cs", "--pids", "4194303"], "there is no process 4194303"),
        (["-e", "cs", "--cpus", "9999"], "CPU 9999 is not online"),
        (["-e", "cs", "--cpus", "x"], "'x' is no list of CPUs"),
        (["-e", "cs", "--cgroup", "/not/there"], "cgroup '/not/there' cannot be opened"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], sentence: str) -> None:
    result = subprocess.run(
        [*DYNO, "stat", "-d", "1", *arguments], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == 1
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


def test_the_list_of_this_machine() -> None:
    result = subprocess.run([*DYNO, "list", "--json"], capture_output=True, text=True, timeout=30, check=False)
    reply = json.loads(result.stdout)
    sets = {one["name"]: one for one in reply["sets"]}
    assert {"default", "topdown", "membw", "software"} <= set(sets)
    assert all(one["events"] or one["missing"] for one in reply["sets"]), "what is missing has a reason"
    assert any(event["event"] == "context-switches" for event in reply["events"])


@needs_perf
@pytest.mark.parametrize(
    ("machine", "events"),
    [("sapphire_rapids", _INTEL_EVENTS), ("zen4", _AMD_EVENTS), ("grace", _ARM_EVENTS)],
)
def test_events_are_encoded_as_perf_encodes_them(machine: str, events: str, tmp_path: Path) -> None:
    """perf on the same recorded machine (SYSFS_PATH) shows the words that it would open."""
    TREES[machine](tmp_path)
    devices = discover(HostFiles(str(tmp_path)))
    for event in events.split():
        shown = subprocess.run(
            ["perf", "stat", "-vv", "-e", event, "true"],
            env=os.environ | {"SYSFS_PATH": str(tmp_path / "sys")},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        ).stderr
        attr = shown.partition("perf_event_attr:")[2].partition("sys_perf_event_open")[0]
        fields = {
            name: int(value, 0) for name, value in re.findall(r"^\s+(\S.*?)\s+(0x[0-9a-f]+|\d+)$", attr, re.MULTILINE)
        }
        assert "size" in fields, shown
        (spec,) = parse_event(event, devices)
        expected = [fields.get(name, 0) for name in ("type", "config", "{ bp_addr, config1 }")]
        assert [spec.type, spec.config, spec.config1] == expected, event
        assert spec.exclude_kernel == bool(fields.get("exclude_kernel")), event
