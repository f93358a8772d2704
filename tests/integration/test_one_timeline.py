"""The host's counters and the process's own events on one clock, on real PyTorch."""

import gzip
import itertools
import json
import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from integration.harness import (
    TORCH_PYTHON,
    Process,
    eventually,
    needs_torch,
    running_daemon,
    running_trainer,
    trainer_env,
)

pytestmark = [needs_torch, pytest.mark.torch]

MS = 1_000_000
# Pulses the CPU, each pulse within a span of its trace, and says so in a /proc/stat of its own, whose number of tasks is the pulse's:
# whoever reads it knows which pulse it was, however loaded this machine is. 37 ms have no beat with the samples' 20 ms.
PULSES = """
import os, sys, time, torch
stat, times = sys.argv[1:]
descriptor = os.open(stat, os.O_RDWR)
said = open(times, "w", buffering=1)
values = torch.ones(8)
for number in range(1, 100_000):
    text = f"cpu  {number:012d} 0 0 {number:012d} 0 0 0 0 0 0\\ncpu0 1 0 0 1 0 0 0 0 0 0\\nprocs_running {number + 1:012d}\\n"
    before_ns = time.time_ns()
    with torch.profiler.record_function(f"pulse {number}"):
        os.pwrite(descriptor, text.encode(), 0)
        after_ns = time.time_ns()
        until = time.monotonic() + 0.037
        while number % 2 and time.monotonic() < until:
            values.add_(1)
            sum(range(20_000))
        time.sleep(max(until - time.monotonic(), 0))
    said.write(f"{number} {before_ns} {after_ns}\\n")
    if number == 1:
        print(" step 1 ", flush=True)
"""


@pytest.fixture
def pulsing(tmp_path: Path) -> Iterator[Path]:
    """The root directory whose /proc/stat pulses; starts nothing."""
    stat = tmp_path / "root" / "proc" / "stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("cpu  1 0 0 1 0 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\nprocs_running 1\n")
    (tmp_path / "pulses.py").write_text(PULSES)
    yield tmp_path / "root"


def wall_ns(trace: dict[str, Any], event: dict[str, Any]) -> int:
    """Unix ns of an event, no digit lost."""
    return int(trace["baseTimeNanoseconds"]) + int(Decimal(event["ts"]) * 1000)


def read(path: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(path.read_bytes(), parse_float=Decimal)
    return parsed


def host_counters(trace: dict[str, Any], name: str) -> list[tuple[int, Decimal]]:
    return [
        (wall_ns(trace, event), event["args"]["value"])
        for event in trace["traceEvents"]
        if event["ph"] == "C" and event["name"] == f"host {name}"
    ]


def test_a_pulse_of_the_cpu_is_seen_by_both_within_a_millisecond(tmp_path: Path, pulsing: Path) -> None:
    """The span of a pulse begins when the process says so, and each sample lies within the pulse that it saw."""
    times = tmp_path / "times"
    with running_daemon(tmp_path / "d", f"--root_dir={pulsing}") as daemon:
        process = Process(
            [str(TORCH_PYTHON), str(tmp_path / "pulses.py"), str(pulsing / "proc/stat"), str(times)],
            env=trainer_env(tmp_path, daemon.ipc_dir),
        )
        try:
            process.wait_for(" step 1 ", timeout_s=240)
            daemon.wait_for_trainers(1)
            recording = ("--duration-ms", "2000", "--warmup-s", "0", "--host-interval-ms", "20")
            done = daemon.dyno(
                "gputrace", "--log-file", f"{tmp_path}/t.json", *recording, "--fetch", str(tmp_path / "got")
            )
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            process.stop(signal.SIGKILL)
    trace = read(tmp_path / "got" / f"t_{process.pid}.json")
    said = [line.split() for line in times.read_text().splitlines() if line.count(" ") == 2]
    pulses = {int(number): (int(before_ns), int(after_ns)) for number, before_ns, after_ns in said}
    spans = {
        int(event["name"].removeprefix("pulse ")): wall_ns(trace, event)
        for event in trace["traceEvents"]
        if event["ph"] == "X" and event.get("cat") == "user_annotation" and event["name"].startswith("pulse ")
    }
    known = spans.keys() & pulses.keys()
    assert len(known) >= 5
    for number in known:
        before_ns, after_ns = pulses[number]
        assert before_ns - MS <= spans[number] <= after_ns + MS, f"the span of pulse {number}"
    # The first is drawn from the trace's begin on.
    samples = [(at_ns, int(value)) for at_ns, value in host_counters(trace, "run_queue")[1:]]
    samples = [(at_ns, number) for at_ns, number in samples if number in pulses and number + 1 in pulses]
    assert len({number for _, number in samples}) >= 5
    # A sample reads the clock, then the file: what it saw may have come between the two, but cannot have been gone at the first.
    late = [(at_ns, number) for at_ns, number in samples if at_ns > pulses[number + 1][1] + MS]
    early = [(at_ns, number) for at_ns, number in samples if at_ns < pulses[number][0] - MS]
    assert not late
    assert len(early) <= len(samples) // 10, "only a reading that was held up between its clock and its file"
    assert all(after > before for (before, _), (after, _) in itertools.pairwise(samples))


def test_ranks_of_one_host_share_its_samples_and_are_fetched_once_each(tmp_path: Path) -> None:
    """With the real host below: strict JSON, every sample within the recording, and nothing is given twice."""
    with (
        running_daemon(tmp_path / "d") as daemon,
        running_trainer(trainer_env(tmp_path, daemon.ipc_dir)),
        running_trainer(trainer_env(tmp_path, daemon.ipc_dir)),
    ):
        daemon.wait_for_trainers(2)
        # They poll once a second, each at its own moment: long enough to record together for a while.
        recording = ("--log-file", f"{tmp_path}/t.json", "--duration-ms", "2500", "--warmup-s", "0")
        answer = daemon.ask("gputrace", *recording, "--fetch", str(tmp_path / "got"), "--gzip")
        assert [fetched.get("error") for fetched in answer["fetched"]] == [None, None], answer["fetched"]
        both = []
        for fetched in answer["fetched"]:
            assert fetched["host_tracks"] >= 8, fetched
            assert fetched["fetched_sha256"] != fetched["sha256"]
            unpacked = tmp_path / "unpacked.json"
            unpacked.write_bytes(gzip.decompress(Path(fetched["path"]).read_bytes()))
            trace = read(unpacked)
            own = [event for event in trace["traceEvents"] if event["ph"] == "X" and event.get("cat") != "Trace"]
            begin_ns = min(wall_ns(trace, event) for event in own)
            end_ns = max(wall_ns(trace, event) + int(event["dur"] * 1000) for event in own)
            user = host_counters(trace, "cpu_user_pct")
            assert all(begin_ns - 1000 <= at_ns <= end_ns + 1000 for at_ns, _ in user)
            both.append({at_ns for at_ns, _ in user[1:]})
        assert both[0] & both[1], "they recorded at the same time, and have the same samples"
        request = answer["request_id"]
        sampled = daemon.ask("trace", "host", request)["blocks"]
        assert {at_ns for block in sampled for at_ns in block["begin_wall_ns"]} >= both[0]
        again = daemon.ask("trace", request, "--fetch", str(tmp_path / "got"), "--gzip")
        assert [fetched["already_here"] for fetched in again["fetched"]] == [True, True]
        plain = Path(
            daemon.ask("trace", request, "--fetch", str(tmp_path / "plain"), "--no-with-host")["fetched"][0]["path"]
        )
        assert not host_counters(read(plain), "cpu_user_pct")
        assert "of the host added" in daemon.dyno("trace", "host", request, "--add", str(plain)).stdout
        once = plain.read_bytes()
        assert host_counters(read(plain), "cpu_user_pct")
        assert "already" in daemon.dyno("trace", "host", request, "--add", str(plain)).stdout
        assert plain.read_bytes() == once


def test_iterations_are_covered_from_their_first_to_their_last(tmp_path: Path) -> None:
    """With the warm-up of 5 s that nobody asked away, for which libkineto does not wait when it counts iterations."""
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)) as trainer:
        daemon.wait_for_trainers(1)
        asked = (
            "--iterations",
            "20",
            "--profile-start-iteration-roundup",
            "1",
            "--host-interval-ms",
            "50",
            "--fetch",
            str(tmp_path / "got"),
        )
        answer = daemon.ask("gputrace", "--log-file", f"{tmp_path}/t.json", *asked)
        (fetched,) = answer["fetched"]
        assert fetched.get("error") is None, fetched
        sampled = daemon.ask("trace", "host", answer["request_id"])["blocks"]
        trace = read(tmp_path / "got" / f"t_{trainer.pid}.json")
    own = [event for event in trace["traceEvents"] if event["ph"] == "X" and event.get("cat") == "cpu_op"]
    begin_ns = min(wall_ns(trace, event) for event in own)
    end_ns = max(wall_ns(trace, event) + int(event["dur"] * 1000) for event in own)
    times = sorted(
        (at_ns, at_ns + elapsed_ns)
        for block in sampled
        if any(series["name"] == "cpu_user_pct" for series in block["series"])
        for at_ns, elapsed_ns in zip(block["begin_wall_ns"], block["elapsed_ns"], strict=True)
    )
    late_ms = (times[0][0] - begin_ns) / MS  # negative when nothing holds up the sampler's thread
    assert late_ms <= 50, f"the recording began {late_ms:.1f} ms before the first sample"
    assert times[-1][1] >= end_ns
    assert all(next_ns - until_ns < 20 * MS for (_, until_ns), (next_ns, _) in itertools.pairwise(times)), "no gap"
    assert len(host_counters(trace, "cpu_user_pct")) >= 2


def test_a_daemon_that_restarts_meanwhile_or_was_not_asked_leaves_the_trace_as_it_is(tmp_path: Path) -> None:
    recording = ("--log-file", f"{tmp_path}/t.json", "--duration-ms", "300", "--warmup-s", "0")
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)) as trainer:
        daemon.wait_for_trainers(1)
        request = daemon.ask("gputrace", *recording)["request_id"]
        done = daemon.dyno("trace", request, "--fetch", str(tmp_path / "got"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "without counters of the host: the daemon has no samples of that time" in done.stderr
        written = tmp_path / f"t_{trainer.pid}.json"
        assert (tmp_path / "got" / written.name).read_bytes() == written.read_bytes()
        written.unlink()
        request = daemon.ask("gputrace", *recording, "--with-host", "--no-wait")["request_id"]
        eventually(lambda: daemon.ask("trace", request)["requests"][0]["captures"][0]["state"] != "pending")
        assert daemon.stop(signal.SIGKILL) != 0
        daemon.stop = lambda *_: 0  # type: ignore[method-assign] # it was killed: how it ended is known
        with running_daemon(tmp_path / "d") as restarted:
            restarted.wait_for_trainers(1)
            done = restarted.dyno("trace", "host", request)
            assert done.returncode != 0
            assert "it restarts" in done.stderr
            eventually(written.exists, what="the trainer writes all the same")
