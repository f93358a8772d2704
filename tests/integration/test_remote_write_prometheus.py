"""A real Prometheus takes what a real daemon writes to it."""

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.receivers import unused_port
from integration.harness import Process, eventually, running_daemon, tool


class Server:
    """Prometheus that scrapes nothing and takes remote writes."""

    def __init__(self, directory: Path) -> None:
        self.url = f"http://127.0.0.1:{unused_port()}"
        config = directory / "prometheus.yml"
        config.write_text("global: {}\n")
        self._process = Process(
            [
                tool("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
                "--web.enable-remote-write-receiver",
            ]
        )
        self._process.wait_for("Server is ready")

    def query(self, expression: str) -> list[dict[str, Any]]:
        url = f"{self.url}/api/v1/query?query={urllib.parse.quote(expression)}"
        with urllib.request.urlopen(url, timeout=10) as reply:
            answer = json.load(reply)
        assert answer["status"] == "success"
        return list(answer["data"]["result"])

    def stop(self) -> None:
        self._process.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


def test_prometheus_takes_every_record_and_has_right_rates(tmp_path: Path, server: Server) -> None:
    """Bytes over loopback, which this test makes, come back as a rate; CPU shares lie between 0 and 1."""
    flags = (
        "--reporting_interval_s=0.25",
        "--use_remote_write",
        f"--remote_write_url={server.url}/api/v1/write",
        f"--spool_dir={tmp_path / 'spool'}",
    )
    with running_daemon(tmp_path / "daemon", *flags) as daemon:
        eventually(lambda: server.query("dynolog_context_switches_total"), what="counters in Prometheus")
        before = switches()
        started = time.time()
        eventually(lambda: time.time() - started > 4, what="four seconds of counting")
        elapsed_s, counted = time.time() - started, switches() - before
        (rate,) = server.query("rate(dynolog_context_switches_total[4s])")
        assert float(rate["value"][1]) == pytest.approx(counted / elapsed_s, rel=0.5)
        (share,) = server.query("dynolog_cpu_utilization_ratio")
        assert 0 <= float(share["value"][1]) <= 1
        assert share["metric"]["job"] == "dynolog"
        (exporter,) = daemon.ask("exporters")["exporters"]
        assert exporter["sent"] > 4
        assert exporter.get("dropped", 0) == 0, exporter
        assert len(server.query("count({job='dynolog'})")) == 1


def switches() -> int:
    """Context switches of this machine since it started (proc_stat(5))."""
    line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("ctxt "))
    return int(line.split()[1])
