"""A real daemon with every exporter on at once: each record reaches each destination once, whatever the others do."""

import json
import re
import socket
import urllib.request
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fakes.http_receiver import answer, http_receiver
from fakes.otlp_receiver import otlp_http
from fakes.receivers import DatagramReceiver, StreamReceiver, unused_port
from fakes.remote_write import read_request
from integration.harness import Daemon, eventually, ipc_directory, running_daemon

INTERVAL_S = 0.2
RECORDS = 12


def time_ns(stamp: str) -> int:
    """Nanoseconds of `2026-11-30T17:33:08.444952403Z`."""
    seconds, fraction = stamp.rstrip("Z").split(".")
    return int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp()) * 10**9 + int(fraction.ljust(9, "0"))


def logged(daemon: Daemon) -> list[dict[str, Any]]:
    """The records in a log of JSON lines."""
    return [fields for line in daemon.lines if "source" in (fields := json.loads(line))]


def objects(text: str) -> list[dict[str, Any]]:
    """JSON objects that follow each other without anything between them."""
    decoder = json.JSONDecoder()
    found = []
    at = 0
    while at < len(text):
        made, at = decoder.raw_decode(text, at)
        found.append(made)
    return found


def otlp_times(requests: list[Any]) -> Counter[int]:
    """How often the uptime of each time has come."""
    return Counter(
        point.time_unix_nano
        for request in requests
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "uptime"
        for point in metric.gauge.data_points
    )


def test_every_record_reaches_every_destination_once(tmp_path: Path) -> None:
    directory = tmp_path / "daemon"
    sockets = ipc_directory(directory)
    with ExitStack() as stack:
        relay = stack.enter_context(StreamReceiver.tcp())
        uds = stack.enter_context(StreamReceiver.unix(sockets / "relay"))
        statsd = stack.enter_context(DatagramReceiver.udp())
        graph = stack.enter_context(http_receiver())
        writes = stack.enter_context(http_receiver())
        writes.then = answer(204)
        otlp, otlp_server = stack.enter_context(otlp_http())
        flags = (
            f"--reporting_interval_s={INTERVAL_S}",
            "--shutdown_timeout_s=10",
            "--use_JSON",
            "--log_format=json",
            "--use_file",
            f"--file_path={tmp_path / 'metrics.jsonl'}",
            "--use_fbrelay",
            f"--fbrelay_port={relay.port}",
            "--use_udsrelay",
            f"--udsrelay_socket_path={sockets / 'relay'}",
            "--use_statsd",
            f"--statsd_address=127.0.0.1:{statsd.port}",
            "--statsd_dialect=dogstatsd",
            "--use_ODS",
            f"--ods_url=http://127.0.0.1:{graph.port}/ods",
            "--use_scuba",
            f"--scuba_url=http://127.0.0.1:{graph.port}/scuba",
            "--use_remote_write",
            f"--remote_write_url=http://127.0.0.1:{writes.port}/write",
            "--use_otlp",
            f"--otlp_endpoint=http://127.0.0.1:{otlp_server.port}",
            "--use_otel",
            f"--otel_endpoint=http://127.0.0.1:{otlp_server.port}",
            "--use_prometheus",
            "--prometheus_port=0",
        )
        with running_daemon(directory, *flags) as daemon:
            eventually(lambda: len(logged(daemon)) >= RECORDS, what="records in the log")
            (said,) = [line for line in daemon.lines if "Prometheus can scrape" in line]
            with urllib.request.urlopen(re.findall(r"http://\S+/metrics", said)[0], timeout=10) as reply:
                page = reply.read().decode()
            exporters = {one["name"]: one for one in daemon.ask("exporters")["exporters"]}
        times = [time_ns(fields["time"]) for fields in logged(daemon)]
        statsd.wait_until(lambda: sum(line.startswith("dynolog.uptime:") for line in statsd.lines) >= len(times))

    assert {name for name, one in exporters.items() if one.get("dropped", 0)} == set()
    assert len(exporters) == 11
    assert len(set(times)) == len(times) >= RECORDS
    millis = [one // 10**6 for one in times]
    seconds = [one // 10**9 for one in times]

    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == logged(daemon)
    relayed = [time_ns(one["@timestamp"]) // 10**6 for one in objects(relay.text.decode())]
    assert relayed == millis
    assert len(relay.received) == 1
    over_uds = [json.loads(line.partition(",")[2])["t"] for line in uds.text.decode().splitlines()]
    assert over_uds == seconds
    assert sum(line.startswith("dynolog.uptime:") for line in statsd.lines) == len(times)
    forms = {
        path: [parse_qs(one.body.decode()) for one in graph.requests if one.path == path] for path in ("/ods", "/scuba")
    }
    assert len(forms["/ods"]) == len(times)
    messages = [json.loads(json.loads(form["logs"][0])[0]["message"]) for form in forms["/scuba"]]
    assert [message["int"]["time"] for message in messages] == seconds
    written = [read_request(request.raw) for request in writes.requests]
    assert [samples[0].timestamp_ms for samples in written] == millis
    assert otlp_times(otlp.metrics) == Counter(times)
    as_logs = [
        entry.time_unix_nano
        for request in otlp.logs
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for entry in scope.log_records
    ]
    assert set(as_logs) == set(times)
    assert len(set(Counter(as_logs).values())) == 1, "as many entries for each record as it has devices"
    otlp.check()
    # A scrape gives the latest record; its time is one of the others'.
    (scraped,) = re.findall(r'^dynolog_source_last_report_timestamp_seconds\{[^}]*source="kernel"\} (\S+)', page, re.M)
    assert min(abs(float(scraped) - one / 1e9) for one in times) < 1e-5

    # The same value under each destination's own name and unit.
    last = lines[-1]
    assert objects(relay.text.decode())[-1]["dyno"]["cpu_util"] == f"{last['cpu_util']:.3f}"
    assert messages[-1]["double"]["cpu_util"] == last["cpu_util"]
    (share,) = [one.value for one in written[-1] if one.labels["__name__"] == "dynolog_cpu_utilization_ratio"]
    assert share == last["cpu_util"] / 100
    assert f"dynolog.cpu_util:{last['cpu_util']!r}|g|#host:{last['host']}" in statsd.lines


def test_destinations_that_hang_or_are_not_there_delay_nobody(tmp_path: Path) -> None:
    """A relay that accepts and reads nothing, an HTTP server that never answers, nobody at all, and a socket that is full."""
    directory = tmp_path / "daemon"
    sockets = ipc_directory(directory)
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        full = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        full.bind(str(sockets / "statsd"))
        port = silent.getsockname()[1]
        flags = (
            f"--reporting_interval_s={INTERVAL_S}",
            "--use_file",
            f"--file_path={tmp_path / 'metrics.jsonl'}",
            "--use_fbrelay",
            f"--fbrelay_port={unused_port()}",
            "--use_ODS",
            f"--ods_url=http://127.0.0.1:{port}/ods",
            "--use_remote_write",
            f"--remote_write_url=http://127.0.0.1:{port}/write",
            "--use_statsd",
            f"--statsd_address=unix://{sockets / 'statsd'}",
            "--use_scuba",
            "--scuba_url=http://192.0.2.1/scuba",  # TEST-NET-1: nobody answers
            "--shutdown_timeout_s=1",
        )
        with running_daemon(directory, *flags) as daemon:
            path = tmp_path / "metrics.jsonl"
            eventually(lambda: path.exists() and path.read_bytes().count(b"\n") >= RECORDS, what="records in the file")
            states = {one["name"]: one for one in daemon.ask("exporters")["exporters"]}
    times = [time_ns(json.loads(line)["time"]) for line in path.read_text().splitlines()]
    gaps = [(after - before) / 1e9 for before, after in pairwise(times)]
    assert max(gaps) < 1.0, "the shortest of these hangs takes a second"
    assert states["fbrelay"]["state"] == "retrying"
    assert "refused" in states["fbrelay"]["error"].lower()
    assert states["statsd"]["dropped"] > 0
    assert states["file"].get("dropped", 0) == 0
