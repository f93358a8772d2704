"""Every budget, measured on this machine in one run; prints a table and writes docs/benchmarks.md.

run.py [--quick] [--only WORD] [--no-write]     --quick: seconds instead of minutes, for a look
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"


class Row(NamedTuple):
    """One line of the table. `floor` is the same work done barely, in this run; `met` is None where there is no budget."""

    what: str
    measured: str
    floor: str
    ratio: str
    budget: str
    met: bool | None


def tool(script: str, *arguments: str, timeout: float = 900) -> dict[str, Any]:
    """Run one of the meters beside this file and parse its JSON."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        sys.exit(f"{script} {' '.join(arguments)} failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextlib.contextmanager
def process(command: list[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has said `ready`; ended at the end."""
    log = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115 - closed with this process
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + 20
        while ready not in Path(log.name).read_text():
            if started.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{command} did not say {ready!r}:\n{Path(log.name).read_text()[-2000:]}")
            time.sleep(0.05)
        yield started
    finally:
        started.terminate()
        started.wait(10)
        log.close()


@contextlib.contextmanager
def daemon(directory: Path, *flags: str, script: str = "") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A daemon with the IPC on, its sockets in `directory`; gives the process and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        *([str(HERE / script)] if script else ["-m", "dynolog.daemon.main"]),
        f"--port={port}",
        "--rpc_bind_address=127.0.0.1",
        f"--rpc_unix_socket={directory}/rpc.sock",
        "--enable_ipc_monitor",
        f"--ipc_socket_dir={directory}",
        f"--ipc_fabric_name=dynolog-bench-{os.getpid()}",
        f"--log_file={directory}/dynolog.log",
        *flags,
    ]
    log = directory / "dynolog.log"
    log.unlink(missing_ok=True)
    started = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 20
        while not log.exists() or "dynolog is ready" not in log.read_text():
            if started.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the daemon did not start: {log.read_text()[-2000:] if log.exists() else ''}")
            time.sleep(0.05)
        yield started, port
    finally:
        started.terminate()
        started.wait(10)


def ratio(measured: float, floor: float) -> str:
    return f"{measured / floor:.1f} ×" if floor else "-"


def cost_of_sampling(directory: Path, seconds: float) -> list[Row]:
    with daemon(directory, "--reporting_interval_s=1") as (running, _):
        time.sleep(3)  # the start-up is not what is measured
        cost = tool("cost.py", str(running.pid), "--seconds", str(seconds))
    floor = tool("cost.py", "--floor", "--hz", "1", "--seconds", str(min(seconds, 20)))["floor_cpu_pct"]
    cpu = cost["cpu_pct"]
    bare = bare_python_pss()
    return [
        Row(
            "CPU, all kernel collectors at 1 s, IPC, RPC and log on",
            f"{cpu:.3f} % of a core",
            f"{floor:.3f} % (the same files, only read)",
            ratio(cpu, floor),
            "≤ 0.3 % and ≤ 6 ×",
            cpu <= 0.3 and cpu <= 6 * floor,
        ),
        Row(
            "memory (PSS) of it",
            f"{cost['pss_mb']} MB",
            f"{bare:.1f} MB (bare Python)",
            ratio(cost["pss_mb"], bare),
            "≤ 25 MB",
            cost["pss_mb"] <= 25,
        ),
        Row("wake-ups of it", f"{cost['wakeups_per_s']}/s", "-", "-", "-", None),
    ]


def bare_python_pss() -> float:
    code = "print(next(int(l.split()[1]) for l in open('/proc/self/smaps_rollup') if l.startswith('Pss:')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def cost_of_idling(directory: Path, seconds: float) -> list[Row]:
    with daemon(directory, "--reporting_interval_s=60") as (running, _):
        time.sleep(3)
        cost = tool("cost.py", str(running.pid), "--seconds", str(seconds))
    return [
        Row(
            "CPU, idle (60 s interval)",
            f"{cost['cpu_pct']:.4f} % of a core",
            "-",
            "-",
            "≤ 0.02 %",
            cost["cpu_pct"] <= 0.02,
        ),
        Row("wake-ups, idle", f"{cost['wakeups_per_s']}/s", "-", "-", "≤ 2/s", cost["wakeups_per_s"] <= 2),
    ]


def kernel_sample(rounds: int) -> list[Row]:
    big = tool("kernel_sample.py", "--rounds", str(rounds))
    live = tool("kernel_sample.py", "--live", "--rounds", str(rounds * 5))
    return [
        Row(
            "one kernel sample: 256 CPUs, 4 nodes, 16 NICs, 64 disks",
            f"{big['dearest_round_ms']:.2f} ms (the dearest round at 1 s; all collectors in one round: {big['total_ms']:.2f} ms)",
            f"{big['floor_ms']:.2f} ms (all the same files, only read)",
            ratio(big["total_ms"], big["floor_ms"]),
            "≤ 5 ms",
            big["dearest_round_ms"] <= 5,
        ),
        Row(
            f"one kernel sample: this machine, {os.cpu_count()} CPUs",
            f"{live['total_ms']:.2f} ms",
            f"{live['floor_ms']:.2f} ms",
            ratio(live["total_ms"], live["floor_ms"]),
            "-",
            None,
        ),
    ]


def perf_sample(rounds: int) -> list[Row]:
    rows = []
    for cpus, budget_ms in ((256, 15.0), (2, 0.3)):
        found = tool("perf_sample.py", "--cpus", str(cpus), "--rounds", str(rounds))["four_groups"]
        rows.append(
            Row(
                f"one sample of performance counters: {cpus} CPUs × 8 events in groups of two",
                f"{found['sample_ms']:.2f} ms",
                f"{found['floor_ms']:.2f} ms (the same groups, only read)",
                ratio(found["sample_ms"], found["floor_ms"]),
                f"≤ {budget_ms:g} ms",
                found["sample_ms"] <= budget_ms,
            )
        )
    return rows


def gpu_sample(rounds: int) -> list[Row]:
    """Our part of a round: CPU of the daemon and of the child, whose backend has nothing below it."""
    small = tool("gpu_sample.py", "--devices", "8", "--rounds", str(rounds))
    large = tool("gpu_sample.py", "--devices", "72", "--rounds", str(rounds))
    pct = (small["daemon_ms"] + small["child_ms"]) / 10
    large_ms = large["daemon_ms"] + large["child_ms"]
    return [
        Row(
            "GPUs, beside the vendor's library: 8 devices × 20 fields at 1 s",
            f"{pct:.3f} % of a core ({small['daemon_ms']:.2f} ms in the daemon, {small['child_ms']:.2f} ms in the child)",
            f"{small['floor_ms'] / 10:.3f} % (the sample encoded and decoded)",
            ratio(pct, small["floor_ms"] / 10),
            "≤ 0.2 %",
            pct <= 0.2,
        ),
        Row(
            "the same: 72 devices, one round",
            f"{large_ms:.2f} ms of CPU ({large['wall_ms']:.2f} ms until the records are made)",
            f"{large['floor_ms']:.2f} ms (the sample encoded and decoded)",
            ratio(large_ms, large["floor_ms"]),
            "≤ 20 ms",
            large_ms <= 20,
        ),
    ]


def ipc(directory: Path, seconds: float) -> list[Row]:
    floor_directory = directory / "floor"
    floor_directory.mkdir(exist_ok=True)
    with process([sys.executable, str(HERE / "floors.py"), "ipc", str(floor_directory)], "ready"):
        floor = tool("trainers.py", "--n", "64", "--flood", "--seconds", "5", "--socket-dir", str(floor_directory))
        floor_polls = tool(
            "trainers.py", "--n", "512", "--interval", "5", "--seconds", "10", "--socket-dir", str(floor_directory)
        )
    with daemon(directory, "--reporting_interval_s=1", "--collector_deadline_s=0.5", script="daemon_with_a_hang.py"):
        polls = tool(
            "trainers.py", "--n", "512", "--interval", "5", "--seconds", str(seconds), "--socket-dir", str(directory)
        )
        killed = tool(
            "trainers.py",
            "--n",
            "512",
            "--interval",
            "5",
            "--seconds",
            "12",
            "--kill-at",
            "4",
            "--socket-dir",
            str(directory),
        )
        flood = tool("trainers.py", "--n", "64", "--flood", "--seconds", "5", "--socket-dir", str(directory))
    late = polls["late_over_90ms"] + killed["late_over_90ms"]
    return [
        Row(
            "IPC reply, 512 trainers polling, every collector at 1 s, one of them hung: p50",
            f"{polls['p50_ms']} ms",
            f"{floor_polls['p50_ms']} ms (a loop that only answers)",
            ratio(polls["p50_ms"], floor_polls["p50_ms"]),
            "≤ 0.3 ms",
            polls["p50_ms"] <= 0.3,
        ),
        Row(
            "the same: p99",
            f"{polls['p99_ms']} ms",
            f"{floor_polls['p99_ms']} ms",
            ratio(polls["p99_ms"], floor_polls["p99_ms"]),
            "≤ 5 ms",
            polls["p99_ms"] <= 5,
        ),
        Row(
            "the same, and again with half of them killed: replies later than 90 ms",
            f"{late} of {polls['replies'] + killed['replies']}",
            "-",
            "-",
            "none",
            late == 0,
        ),
        Row(
            "IPC replies/s, 64 trainers as fast as they can",
            f"{flood['replies_per_s']:.0f}",
            f"{floor['replies_per_s']:.0f}",
            ratio(flood["replies_per_s"], floor["replies_per_s"]),
            "≥ 10,000",
            flood["replies_per_s"] >= 10_000,
        ),
    ]


def rpc(directory: Path) -> list[Row]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        floor_port = str(probe.getsockname()[1])
    with process([sys.executable, str(HERE / "floors.py"), "rpc", floor_port], "ready"):
        floor = tool("rpc_load.py", "--port", floor_port)
        floor_many = tool("rpc_load.py", "--port", floor_port, "--clients", "8")
    with daemon(directory, "--reporting_interval_s=1") as (_, port):
        alone = tool("rpc_load.py", "--port", str(port))
        many = tool("rpc_load.py", "--port", str(port), "--clients", "8")
        crowd = tool("rpc_crowd.py", "--port", str(port), "--clients", "64")
        silent = tool("rpc_load.py", "--port", str(port), "--silent", "100")
    return [
        Row(
            "RPC getStatus: p50",
            f"{alone['p50_ms']} ms",
            f"{floor['p50_ms']} ms (accept, read, send)",
            ratio(alone["p50_ms"], floor["p50_ms"]),
            "≤ 0.5 ms",
            alone["p50_ms"] <= 0.5,
        ),
        Row(
            "RPC getStatus, 8 clients",
            f"{many['per_s']:.0f}/s",
            f"{floor_many['per_s']:.0f}/s",
            ratio(many["per_s"], floor_many["per_s"]),
            "≥ 4,000/s",
            many["per_s"] >= 4000,
        ),
        Row("RPC getStatus, 64 clients: worst", f"{crowd['max_ms']} ms", "-", "-", "≤ 100 ms", crowd["max_ms"] <= 100),
        Row(
            "RPC getStatus, 100 silent connections: p99",
            f"{silent['p99_ms']} ms",
            f"{floor['p99_ms']} ms (none silent)",
            ratio(silent["p99_ms"], floor["p99_ms"]),
            "≤ 20 ms",
            silent["p99_ms"] <= 20 and not silent["failed"],
        ),
    ]


def many_trainers(directory: Path) -> list[Row]:
    with daemon(directory, "--reporting_interval_s=60") as (running, port):
        found = tool(
            "many_trainers.py",
            "--pid",
            str(running.pid),
            "--port",
            str(port),
            "--socket-dir",
            str(directory),
            "--n",
            "4000",
        )
    return [
        Row(
            f"{found['registered']} trainers: trigger all",
            f"{found['trigger_ms']} ms",
            "-",
            "-",
            "≤ 50 ms",
            found["trigger_ms"] <= 50,
        ),
        Row(
            "the same: memory each",
            f"{found['bytes_each']} bytes",
            "-",
            "-",
            "≤ 2,000 bytes",
            found["bytes_each"] <= 2000,
        ),
        Row("the same: left of it after they went", f"{found['left_bytes_each']} bytes", "-", "-", "-", None),
    ]


def command_time(directory: Path) -> list[Row]:
    with daemon(directory) as _:
        dyno = [str(Path(sys.executable).parent / "dyno"), "--unix", f"{directory}/rpc.sock", "status"]
        ours = median_ms(dyno)
    bare = median_ms([sys.executable, "-c", "pass"])
    return [
        Row(
            "`dyno status`, the whole command",
            f"{ours:.0f} ms",
            f"{bare:.0f} ms (bare Python)",
            ratio(ours, bare),
            "≤ 150 ms",
            ours <= 150,
        )
    ]


def fleet(count: int) -> list[Row]:
    found = tool("fleet.py", "--n", str(count))
    what = f"`dyno gputrace` on {count:,} daemons"
    return [
        Row(
            f"{what}: from the command to the last acknowledgement",
            f"{found['command_s']} s",
            f"{found['floor_s']} s (the same calls by a bare event loop)",
            ratio(found["command_s"], found["floor_s"]),
            "≤ 2 s",
            found["command_s"] <= 2,
        ),
        Row(f"{what}: peak memory", f"{found['peak_mb']} MB", "-", "-", "≤ 150 MB", found["peak_mb"] <= 150),
    ]


def prometheus(rounds: int) -> list[Row]:
    found = tool("prometheus.py", "--rounds", str(rounds))
    return [
        Row(
            f"Prometheus: first scrape after a report, {found['samples']} samples (256 CPUs each, 16 NICs, 64 disks, 8 GPUs), gzip",
            f"{found['first_ms']} ms",
            f"{found['library_cpu_ms']} ms (generate_latest of the same samples, without gzip and HTTP)",
            ratio(found["first_ms"], found["library_cpu_ms"]),
            "≤ 60 ms",
            found["first_ms"] <= 60,
        ),
        Row(
            "Prometheus: repeated scrape",
            f"{found['repeated_ms']} ms",
            f"{found['floor_ms']} ms (a server that only sends as many bytes)",
            ratio(found["repeated_ms"], found["floor_ms"]),
            "≤ 5 ms",
            found["repeated_ms"] <= 5,
        ),
        Row(
            "Prometheus: CPU of a report",
            f"{found['put_cpu_ms']} ms to take it in, {found['page_cpu_ms']} ms for the page",
            f"{found['join_cpu_ms']} ms (join of lines that are there)",
            "-",
            "-",
            None,
        ),
    ]


def median_ms(command: list[str], runs: int = 15) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[runs // 2]


def exporters(count: int) -> list[Row]:
    """Each exporter by itself, its receiver on this machine; the record is the kernel's with two nodes and four of each device."""
    from exporters import DESTINATIONS  # noqa: PLC0415 - a meter beside this file, of which only the names are needed

    rows = []
    for name in DESTINATIONS:
        found = tool("exporters.py", name, "--records", str(count))
        queue = (
            f"; a full queue: {found['queue_records']} records, {found['rss_mb']} MB"
            if "queue_records" in found
            else ""
        )
        rows.append(
            Row(
                f"exporter {name}: records of {found['values']} values",
                f"{found['records_per_s']:,} records/s, {found['cpu_ms_per_1000']:.0f} ms CPU per 1,000{queue}",
                f"{found['floor_ms_per_1000']:.0f} ms (only their values, as JSON)",
                ratio(found["cpu_ms_per_1000"], found["floor_ms_per_1000"]),
                "-",
                None,
            )
        )
    return rows


def otlp(count: int) -> list[Row]:
    found = tool("otlp.py", "--records", str(count))
    floor = found["floor"]["cpu_ms_per_1000"]
    queue = found["queue"]
    rows = [
        Row(
            f"exporter OTLP, {name}: records of {found['values']} values, one a request",
            f"{found[kind]['records_per_s']:,} records/s, {found[kind]['cpu_ms_per_1000']:.0f} ms CPU per 1,000",
            f"{floor:.0f} ms (ready messages, serialised and written to a socket)",
            ratio(found[kind]["cpu_ms_per_1000"], floor),
            "-",
            None,
        )
        for kind, name in (("http", "HTTP"), ("gzip", "HTTP with gzip"), ("grpc", "gRPC"))
    ]
    held = f"{queue['queued_records']} records in {queue['queued_mb']} MB, the process grew by {queue['grown_mb']} MB"
    return [*rows, Row("exporter OTLP: a full queue", held, "-", "-", "≤ --exporter_queue_mb", queue["queued_mb"] <= 8)]


def trace_reader(megabytes: int) -> list[Row]:
    rows = []
    for name, found in tool("trace_reader.py", str(megabytes)).items():
        load, window, plain = found["load"], found["window"], found["json"]
        speeds = [one["size_bytes"] / one["cpu_s"] / 1e6 for one in (load, plain)]
        peaks = [one["peak_bytes"] / one["size_bytes"] for one in (load, window, plain)]
        rows += [
            Row(
                f"a trace of {load['size_bytes'] / 1e6:.0f} MB ({name}) into columns",
                f"{speeds[0]:.0f} MB/s",
                f"{speeds[1]:.0f} MB/s (json.load)",
                ratio(speeds[0], speeds[1]),
                "≥ 150 MB/s",
                speeds[0] >= 150,
            ),
            Row(
                "the same: peak memory, and when only a short time is asked for",
                f"{peaks[0]:.2f} × the JSON, {peaks[1]:.2f} ×",
                f"{peaks[2]:.2f} × (json.load)",
                ratio(peaks[0], peaks[2]),
                "≤ 1.5 ×",
                peaks[0] <= 1.5,
            ),
        ]
    return rows


def analyze(megabytes: int) -> list[Row]:
    found = tool("analyze.py", str(megabytes))
    ours, other = found["ours"], found.get("hta")
    what = f"a trace of {found['size_bytes'] / 1e6:.0f} MB analysed"
    measured = (f"{ours['cpu_s']:.2f} s of CPU", f"{ours['peak_bytes'] / 1e6:.0f} MB")
    if other is None:
        return [Row(what, ", ".join(measured), "HolisticTraceAnalysis is not installed", "-", "-", None)]
    faster, smaller = other["cpu_s"] / ours["cpu_s"], ours["peak_bytes"] / other["peak_bytes"]
    return [
        Row(
            what,
            measured[0],
            f"{other['cpu_s']:.1f} s (HolisticTraceAnalysis)",
            f"1 / {faster:.0f}",
            "≤ 1 / 10",
            faster >= 10,
        ),
        Row(
            "the same: peak memory",
            measured[1],
            f"{other['peak_bytes'] / 1e6:.0f} MB",
            f"{smaller:.2f} ×",
            "≤ 0.25 ×",
            smaller <= 0.25,
        ),
    ]


def page(rows: list[Row], quick: bool) -> str:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown CPU",
    )
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Machines differ, so each figure stands beside its floor, the same work done as barely as Python",
        "can in the same run, and the ratio is what to compare.",
        "",
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs ({cpu}), Linux {platform.release()}, Python {platform.python_version()}{', quick run' if quick else ''}.",
        "",
        "| what | measured | floor | ratio | budget | met |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.what} | {row.measured} | {row.floor} | {row.ratio} | {row.budget} | {'-' if row.met is None else 'yes' if row.met else '**no**'} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="parts whose name contains this")
    parser.add_argument("--no-write", action="store_true")
    arguments = parser.parse_args()
    seconds = 8.0 if arguments.quick else 60.0
    directory = Path(tempfile.mkdtemp(prefix="dynolog-bench-"))
    parts: dict[str, Callable[[], list[Row]]] = {
        "sampling": lambda: cost_of_sampling(directory, seconds),
        "idling": lambda: cost_of_idling(directory, seconds),
        "kernel_sample": lambda: kernel_sample(20 if arguments.quick else 100),
        "perf_sample": lambda: perf_sample(20 if arguments.quick else 100),
        "gpu_sample": lambda: gpu_sample(50 if arguments.quick else 200),
        "ipc": lambda: ipc(directory, seconds),
        "rpc": lambda: rpc(directory),
        "many_trainers": lambda: many_trainers(directory),
        "command": lambda: command_time(directory),
        "fleet": lambda: fleet(1000),
        "prometheus": lambda: prometheus(10 if arguments.quick else 40),
        "otlp": lambda: otlp(300 if arguments.quick else 1000),
        "exporters": lambda: exporters(200 if arguments.quick else 2000),
        "trace_reader": lambda: trace_reader(60 if arguments.quick else 200),
        "analyze": lambda: analyze(25 if arguments.quick else 50),
    }
    rows: list[Row] = []
    try:
        for name, part in parts.items():
            if arguments.only in name:
                print(f"... {name}", file=sys.stderr, flush=True)
                rows += part()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text = page(rows, arguments.quick)
    print(text)
    if not arguments.no_write and not arguments.only:
        PAGE.write_text(text)
    missed = [row.what for row in rows if row.met is False]
    if missed:
        print("budgets missed:\n  " + "\n  ".join(missed), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
