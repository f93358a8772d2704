"""The real Prometheus server scrapes the daemon: right rates, no complaint, and a daemon that stops is seen to."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Daemon, Process, eventually, running_daemon, tool

# Debian's package starts nothing here; see .ci/run.
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: dynolog
    static_configs: [{{targets: ['{target}']}}]
"""
# A megabyte each way a second on loopback, which nothing else here does.
CHUNK = bytes(65536)
CHUNKS_EACH_S = 16


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Prometheus(Process):
    """A server of its own directory and port."""

    def __init__(self, directory: Path, target: str) -> None:
        binary = tool("prometheus")
        directory.mkdir()
        config = directory / "prometheus.yml"
        config.write_text(CONFIG.format(target=target))
        self.url = f"http://127.0.0.1:{free_port()}"
        super().__init__(
            [
                binary,
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ]
        )
        self.wait_for("Server is ready to receive web requests", timeout_s=30)

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer of its HTTP API."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as reply:
            answer = json.load(reply)
        assert answer["status"] == "success", answer
        return answer["data"]

    def value(self, expression: str, at_s: float | None = None) -> float | None:
        """The only result of a query; None when there is none."""
        query = {"query": expression} | ({"time": str(at_s)} if at_s else {})
        results = self.ask("query", **query)["result"]
        assert len(results) <= 1, results
        return float(results[0]["value"][1]) if results else None

    def health(self) -> tuple[str, str]:
        """Of its one target: state, and the last error."""
        targets = self.ask("targets")["activeTargets"]
        return targets[0]["health"], targets[0]["lastError"]


@contextlib.contextmanager
def running_prometheus(directory: Path, target: str) -> Iterator[Prometheus]:
    server = Prometheus(directory, target)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def scraped(directory: Path, names: str) -> Iterator[tuple[Daemon, Prometheus]]:
    tool("prometheus")
    port = free_port()
    flags = ("--use_prometheus", f"--prometheus_port={port}", f"--prometheus_names={names}", "--reporting_interval_s=1")
    with (
        running_daemon(directory / "daemon", *flags) as daemon,
        running_prometheus(directory / "prometheus", f"127.0.0.1:{port}") as server,
    ):
        yield daemon, server


def loopback_bytes() -> int:
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.partition(":")[2].split()[0])


def idle_s() -> float:
    return int(Path("/proc/stat").read_text().split()[4]) / 100


class Traffic:
    """Bytes over loopback, evenly."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._out = socket.create_connection(self._listener.getsockname())
        self._in, _ = self._listener.accept()

    def second(self) -> None:
        """One second of it."""
        started = time.monotonic()
        for number in range(1, CHUNKS_EACH_S + 1):
            self._out.sendall(CHUNK)
            left = len(CHUNK)
            while left:
                left -= len(self._in.recv(left))
            time.sleep(max(started + number / CHUNKS_EACH_S - time.monotonic(), 0))

    def close(self) -> None:
        for each in (self._in, self._out, self._listener):
            each.close()


def test_rates_are_those_of_proc_read_independently(tmp_path: Path) -> None:
    """Counters by the standard names: what Prometheus makes of them over 12 s is what /proc says of the same time."""
    traffic = Traffic()
    with contextlib.closing(traffic), scraped(tmp_path, "standard") as (_, server):
        expression = 'dynolog_network_receive_bytes_total{device="lo"}'
        eventually(lambda: server.value(expression), what="a first sample")
        traffic.second()
        traffic.second()
        started_s, bytes_before = time.time(), loopback_bytes()
        for _ in range(12):
            traffic.second()
        ended_s, bytes_after = time.time(), loopback_bytes()
        traffic.second()
        traffic.second()
        wanted = (bytes_after - bytes_before) / (ended_s - started_s)
        measured = server.value(f"rate({expression}[12s])", ended_s)
        assert measured == pytest.approx(wanted, rel=0.15)
        assert measured is not None
        assert measured > CHUNKS_EACH_S * len(CHUNK)
        assert server.health() == ("up", "")
        assert server.value("dynolog_source_up") == 1
        assert server.value("count(scrape_samples_scraped > 100)") == 1
        kinds = server.ask("metadata", metric="dynolog_network_receive_bytes_total") or server.ask(
            "metadata", metric="dynolog_network_receive_bytes"
        )
        assert {kind["type"] for entries in kinds.values() for kind in entries} == {"counter"}
        assert server.value("sum(resets(dynolog_network_receive_bytes_total[30s]))") == 0


def test_shares_are_those_of_proc_and_the_dynolog_style_is_understood(tmp_path: Path) -> None:
    """The original's names; the idle share of /proc/stat, read beside the daemon."""
    with scraped(tmp_path, "dynolog") as (daemon, server):
        name = "cpu_i"
        eventually(lambda: server.value(name), what="a first sample")
        ticks = [idle_s()]
        started_s = time.time()
        time.sleep(5)
        ticks.append(idle_s())
        ended_s = time.time()
        time.sleep(1.5)
        cpus = Path("/proc/stat").read_text().count("\ncpu")
        wanted = 100 * (ticks[1] - ticks[0]) / (ended_s - started_s) / cpus
        measured = server.value(f"avg_over_time({name}[5s])", ended_s + 0.5)
        assert measured == pytest.approx(wanted, abs=12)
        assert server.health() == ("up", "")
        assert daemon.stop() == 0
        assert eventually(lambda: server.value("up") == 0, 10, "the daemon is seen to be down")
        assert server.value(name) is None, "values of a daemon that stopped are stale at once"


def test_a_taken_port_ends_the_daemon_with_one_sentence_and_code_3(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "dynolog.daemon.main",
            "--port=0",
            f"--rpc_unix_socket={tmp_path / 'rpc.sock'}",
        ]
        done = subprocess.run(
            [*command, "--use_prometheus", f"--prometheus_port={port}"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 3
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"dynolog: port {port} on 127.0.0.1, where Prometheus should scrape, is taken")
    assert "Traceback" not in done.stderr


def test_promtool_finds_nothing_in_a_running_daemon(tmp_path: Path) -> None:
    promtool = tool("promtool")
    port = free_port()
    flags = ("--use_prometheus", f"--prometheus_port={port}", "--prometheus_names=standard", "--per_cpu")
    with running_daemon(tmp_path / "daemon", *flags, "--reporting_interval_s=0.5"):

        def page() -> bytes:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
                text: bytes = reply.read()
            return text if b"dynolog_per_cpu_idle_ratio" in text else b""

        text = eventually(page, what="a report")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
