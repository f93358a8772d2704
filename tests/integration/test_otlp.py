"""A real daemon that sends OTLP: to a strict receiver, whose values must be those of the log, and to real collectors."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from dynolog.exporters.otlp.names import series_name, unknown_name
from dynolog.model.metric import Kind
from fakes.otlp_catalogue import full_catalogue
from fakes.otlp_checks import number, plain
from fakes.otlp_receiver import otlp_grpc, otlp_http
from integration.harness import Daemon, Process, eventually, running_daemon

CATALOGUE = full_catalogue()
Point = tuple[str, frozenset[tuple[str, object]]]


def points(requests: list[ExportMetricsServiceRequest]) -> dict[int, dict[Point, float]]:
    """Values by millisecond, then by name and attributes."""
    found: dict[int, dict[Point, float]] = {}
    for request in requests:
        for metric in request.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.sum.data_points or metric.gauge.data_points:
                key = (metric.name, frozenset((pair.key, plain(pair.value)) for pair in point.attributes))
                found.setdefault(point.time_unix_nano // 10**6, {})[key] = number(point)
    return found


def logged(daemon: Daemon, style: str) -> dict[int, dict[Point, float]]:
    """The same of the daemon's log: each value as it must be sent."""
    found: dict[int, dict[Point, float]] = {}
    for line in list(daemon.lines):
        match = re.search(r"time = (\S+)Z data = (\{.*\})", line)
        if match is None:
            continue
        stamp = datetime.fromisoformat(match[1] + "+00:00")
        values = found.setdefault(round(stamp.timestamp() * 1000), {})
        for key, text in json.loads(match[2]).items():
            series = CATALOGUE.resolve(key)
            if series is not None and series.metric.kind is Kind.LABEL:
                continue
            name = series_name(series, style) if series else unknown_name(key, style)
            values[name.name, frozenset(name.attributes)] = name.value(float(text))
    return found


@pytest.mark.parametrize("style", ["dynolog", "semconv"])
def test_what_arrives_is_what_the_log_says_at_the_same_time(tmp_path: Path, style: str) -> None:
    with otlp_http() as (receiver, server):
        flags = (
            "--use_otlp",
            "--use_JSON",
            f"--otlp_endpoint=http://127.0.0.1:{server.port}",
            f"--otlp_names={style}",
            "--otlp_compression=gzip",
            "--reporting_interval_s=0.5",
            "--per_cpu",
            "--allow_interface_prefixes=lo",
            "--filter_nic_interfaces",
        )
        with running_daemon(tmp_path / "d", *flags) as daemon:
            receiver.wait_for(4, 30)
        # Stopped: everything is delivered and logged.
        receiver.check()
        assert all(headers["content-encoding"] == "gzip" for headers in receiver.headers)
        sent, said = points(receiver.metrics), logged(daemon, style)
    assert len(sent) >= 4
    assert sorted(sent) == sorted(said)
    for millisecond, values in said.items():
        assert sent[millisecond].keys() == values.keys()
        for point, value in values.items():
            # The log has three decimals.
            assert sent[millisecond][point] == pytest.approx(value, rel=1e-9, abs=0.00051), point


def test_running_totals_over_grpc_grow_by_what_the_log_says(tmp_path: Path) -> None:
    with otlp_grpc() as (receiver, server):
        flags = (
            "--use_otlp",
            "--use_JSON",
            f"--otlp_endpoint=http://localhost:{server.port}",
            "--otlp_protocol=grpc",
            "--otlp_temporality=cumulative",
            "--reporting_interval_s=0.5",
        )
        with running_daemon(tmp_path / "d", *flags) as daemon:
            receiver.wait_for(5, 30)
        receiver.check()
        sent, said = points(receiver.metrics), logged(daemon, "dynolog")
    point: Point = ("context_switches", frozenset())
    times = [millisecond for millisecond in sorted(sent) if point in sent[millisecond]]
    assert len(times) >= 4
    total = 0.0
    for millisecond in times:
        total += said[millisecond][point]
        assert sent[millisecond][point] == total


def test_log_records_carry_the_values_of_the_log(tmp_path: Path) -> None:
    mappings = tmp_path / "mappings.csv"
    mappings.write_text("cpu_util,cpu_ratio,0.01\nuptime,host[uptime]\n")
    with otlp_http() as (receiver, server):
        flags = (
            "--use_otel",
            "--use_JSON",
            f"--otel_endpoint=http://127.0.0.1:{server.port}",
            "--otel_resource_attrs=Cluster=a",
            f"--otel_metric_mappings_file={mappings}",
            "--reporting_interval_s=0.5",
        )
        with running_daemon(tmp_path / "d", *flags) as daemon:
            receiver.wait_for(3, 30)
        receiver.check()
        said = {}
        for line in daemon.lines:
            if match := re.search(r"time = (\S+)Z data = (\{.*\})", line):
                said[round(datetime.fromisoformat(match[1] + "+00:00").timestamp() * 1000)] = json.loads(match[2])
    records = [record for request in receiver.logs for record in request.resource_logs[0].scope_logs[0].log_records]
    assert sorted(record.time_unix_nano // 10**6 for record in records) == sorted(said)
    resource = {pair.key: plain(pair.value) for pair in receiver.logs[0].resource_logs[0].resource.attributes}
    assert resource["cluster"] == "a"
    for record in records:
        values: dict[str, Any] = {pair.key: plain(pair.value) for pair in record.attributes}
        expected = said[record.time_unix_nano // 10**6]
        if "cpu_util" in expected:
            assert values["cpu_ratio"] == pytest.approx(float(expected["cpu_util"]) / 100, abs=1e-5)
        assert values["host"] == {"uptime": str(expected["uptime"])}
        assert values.keys() - {"sample_time", "cpu_ratio", "host"} == expected.keys() - {"cpu_util", "uptime"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def rotel(directory: Path) -> Iterator[tuple[Process, int, int]]:
    """The collector rotel, which prints what it takes; its ports for HTTP and gRPC."""
    agent = Path(sysconfig.get_path("purelib")) / "rotel" / "rotel-agent"
    http, grpc = free_port(), free_port()
    command = [str(agent), "start", "--exporter", "blackhole", "--debug-log-verbosity", "detailed"]
    command += ["--debug-log", "metrics", "--debug-log", "logs", "--batch-timeout", "20ms"]
    command += ["--pid-file", str(directory / "rotel.pid"), "--log-file", str(directory / "rotel.log")]
    command += ["--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}"]
    process = Process(command)
    try:
        eventually(lambda: accepts(http) and accepts(grpc), 20, "rotel listens")
        yield process, http, grpc
    finally:
        process.stop()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_real_collector_takes_the_metrics(tmp_path: Path, protocol: str) -> None:
    with rotel(tmp_path) as (collector, http, grpc):
        port = grpc if protocol == "grpc" else http
        flags = (
            "--use_otlp",
            f"--otlp_endpoint=http://127.0.0.1:{port}",
            f"--otlp_protocol={protocol}",
            "--otlp_compression=gzip",
            "--reporting_interval_s=0.5",
        )
        with running_daemon(tmp_path / "d", *flags) as daemon:
            collector.wait_for("-> Name: cpu_u_ms", count=2)
            (exporter,) = daemon.ask("exporters")["exporters"]
            assert (exporter.get("error", ""), exporter.get("dropped", 0)) == ("", 0)
    text = collector.output
    assert "-> service.name: Str(dynolog)" in text
    block = text[text.index("-> Name: cpu_u_ms") :][:700]
    assert "-> Unit: s" in block
    assert "-> IsMonotonic: true" in block
    assert "AGGREGATION_TEMPORALITY_DELTA" in block
    assert "-> cpu.mode: Str(user)" in block


def test_a_real_collector_takes_the_log_records(tmp_path: Path) -> None:
    with rotel(tmp_path) as (collector, http, _):
        flags = ("--use_otel", f"--otel_endpoint=http://127.0.0.1:{http}", "--reporting_interval_s=0.5")
        with running_daemon(tmp_path / "d", *flags):
            collector.wait_for("cpu_util")


def test_oteltap_sees_the_names_of_the_conventions(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "oteltap", "--port", str(port), "--await-metric", "system[.]cpu[.]utilization"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tap:
        try:
            eventually(lambda: accepts(port), 20, "oteltap listens")
            flags = (
                "--use_otlp",
                f"--otlp_endpoint=http://127.0.0.1:{port}",
                "--otlp_names=semconv",
                "--reporting_interval_s=0.5",
            )
            with running_daemon(tmp_path / "d", *flags):
                assert tap.wait(30) == 0
        finally:
            tap.kill()
