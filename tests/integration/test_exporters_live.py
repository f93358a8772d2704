"""A real daemon whose OTLP destination is away: what dyno says, what a kill and a stop cost, and that all arrives afterwards."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from fakes.http_receiver import Request, http_receiver
from integration.harness import Daemon, eventually, running_daemon


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def exporter(daemon: Daemon, name: str) -> dict[str, Any]:
    """What `dyno exporters` knows of one."""
    exporters: list[dict[str, Any]] = daemon.ask("exporters")["exporters"]
    # What is as at the start is left out.
    return {"state": "idle", "spool_bytes": 0, "retries": 0} | next(
        entry for entry in exporters if entry["name"] == name
    )


def stamps(requests: list[Request]) -> Counter[str]:
    """Times of the records in requests, as digits of nanoseconds, and how often each came."""
    seen: Counter[str] = Counter()
    for request in requests:
        message = ExportMetricsServiceRequest.FromString(request.body)
        times = {
            str(point.time_unix_nano)
            for resource in message.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in (*metric.gauge.data_points, *metric.sum.data_points)
        }
        seen.update(times)
    return seen


def written(path: Path) -> list[str]:
    """Times of the records that the file exporter wrote, as the same digits (it cuts zeros at their end)."""
    texts = [json.loads(line)["time"] for line in path.read_text().splitlines() if line.endswith("}")]
    return [text.removesuffix("Z").partition("T")[2].partition(".")[2] for text in texts]


def test_all_records_arrive_after_the_destination_was_away_and_the_daemon_was_killed(tmp_path: Path) -> None:
    port = free_port()
    flags = (
        "--kernel_monitor_reporting_interval_s=0.1",
        "--use_otlp",
        f"--otlp_endpoint=http://127.0.0.1:{port}",
        f"--spool_dir={tmp_path / 'spool'}",
        "--use_file",
        f"--file_path={tmp_path / 'records.jsonl'}",
    )
    daemon = Daemon(tmp_path, *flags)
    waiting = eventually(
        lambda: (
            (status := exporter(daemon, "otlp"))["spool_bytes"] > 50_000 and status["state"] == "retrying" and status
        )
    )
    assert waiting["error"] == "Connection refused"
    assert waiting["spool"] == "on"
    shown = daemon.dyno("exporters")
    assert shown.returncode == 1
    assert "otlp: Connection refused" in shown.stdout
    values = eventually(
        lambda: (
            (found := daemon.ask("metrics")["records"][0]["values"]).get("dynolog_exporter_spool_bytes.otlp") and found
        )
    )
    assert values["dynolog_exporter_up.otlp"] == 0
    assert values["dynolog_exporter_up.file"] == 1
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    with running_daemon(tmp_path, *flags) as again:
        eventually(lambda: exporter(again, "otlp")["retries"] > 0)
        with http_receiver(port=port) as receiver:
            eventually(lambda: exporter(again, "otlp")["state"] == "ok")
            eventually(lambda: exporter(again, "otlp")["spool_bytes"] < 70_000)
            assert again.dyno("exporters").returncode == 0
            again.stop()
    assert again.popen.returncode == 0
    arrived = stamps(receiver.requests)
    fractions = Counter(stamp[-9:] for stamp in arrived)
    missing = [fraction for fraction in written(tmp_path / "records.jsonl") if fraction.ljust(9, "0") not in fractions]
    # Records that were written to the file in the moment of the kill.
    assert len(missing) <= 2
    assert len(arrived) > 20
    assert [stamp for stamp, count in arrived.items() if count > 1] == []
    order = list(arrived)
    assert order == sorted(order)


@pytest.mark.parametrize("spooling", [False, True])
def test_a_stop_takes_no_longer_than_it_may(tmp_path: Path, spooling: bool) -> None:
    flags = (
        "--kernel_monitor_reporting_interval_s=0.1",
        "--use_otlp",
        f"--otlp_endpoint=http://127.0.0.1:{free_port()}",
        "--shutdown_timeout_s=1.5",
        *([f"--spool_dir={tmp_path / 'spool'}"] if spooling else []),
    )
    with running_daemon(tmp_path, *flags) as daemon:
        eventually(lambda: exporter(daemon, "otlp")["retries"] > 0)
        started = time.monotonic()
        daemon.stop()
        took_s = time.monotonic() - started
    assert took_s < 15
    assert ("not everything could be delivered" in daemon.output) is not spooling


def test_the_rules_of_a_file_are_kept_and_read_again(tmp_path: Path) -> None:
    rules = tmp_path / "exporters.toml"
    rules.write_text('[file]\nmetrics = ["uptime"]\n[file.rename]\nuptime = "seconds_up"\n')
    records = tmp_path / "records.jsonl"
    flags = (
        "--kernel_monitor_reporting_interval_s=0.1",
        "--use_file",
        f"--file_path={records}",
        f"--exporters_config={rules}",
    )
    with running_daemon(tmp_path, *flags, f"--spool_dir={tmp_path / 'spool'}") as daemon:
        assert "--spool_dir has no effect" in daemon.output
        eventually(lambda: records.exists() and records.read_text())
        assert set(json.loads(records.read_text().splitlines()[0])) == {"time", "host", "source", "seconds_up"}
        rules.write_text('[file]\nmetrics = ["procs_running"]\n[file.rename]\nuptime = "seconds_up"\n')
        daemon.popen.send_signal(signal.SIGHUP)
        daemon.wait_for("new rules are in effect")
        eventually(lambda: "procs_running" in records.read_text())
        rules.write_text("[file\n")
        daemon.popen.send_signal(signal.SIGHUP)
        daemon.wait_for("rules of exporters not reloaded")


def test_exporters_come_go_and_change_with_a_reload(tmp_path: Path) -> None:
    """Nothing else is disturbed; flags that cannot be used change nothing; a port that is taken leaves the old one."""
    flags, first, second = tmp_path / "flags", tmp_path / "first.jsonl", tmp_path / "second.jsonl"

    def reload(*lines: str) -> dict[str, Any]:
        flags.write_text("".join(f"{line}\n" for line in lines))
        reply: dict[str, Any] = daemon.ask("reload")
        return reply

    port, other, third = free_port(), free_port(), free_port()
    flags.write_text(f"--use_file\n--file_path={first}\n")
    with running_daemon(tmp_path, f"--flagfile={flags}", "--kernel_monitor_reporting_interval_s=0.1") as daemon:
        eventually(lambda: first.exists() and first.read_text())
        prometheus = ("--use_prometheus", f"--prometheus_port={port}", "--prometheus_names=standard")
        reply = reload("--use_file", f"--file_path={second}", *prometheus)
        assert set(reply["changed"]) == {f"--file_path={second}", *prometheus[1:], "--use_prometheus=True"}
        written = first.read_text()
        eventually(lambda: second.exists() and second.read_text())
        eventually(lambda: "dynolog_cpu_utilization_ratio" in scrape(port))
        assert first.read_text() == written, "the first is closed"
        times = [json.loads(line)["time"] for path in (first, second) for line in path.read_text().splitlines()]
        assert times == sorted(set(times)), "no record is twice, none of them out of order"
        sent = exporter(daemon, "file")["sent"]
        assert sent >= len(written.splitlines()), "what the first had sent stays counted"

        assert "prometheus_names" in reload("--use_file", "--prometheus_names=wrong", *prometheus)["errors"][0]
        with socket.create_server(("127.0.0.1", other)):
            errors = reload("--use_file", f"--file_path={second}", "--use_prometheus", f"--prometheus_port={other}")[
                "errors"
            ]
        assert "could not begin" in errors[0]
        assert errors[1] == "prometheus goes on with its old flags"
        eventually(lambda: "dynolog_cpu_utilization_ratio" in scrape(port))

        counted = counter(scrape(port))
        assert counted > 0
        assert reload(
            "--use_file", f"--file_path={second}", f"--prometheus_port={third}", prometheus[0], prometheus[2]
        )["changed"]
        assert eventually(lambda: counter(scrape(third))) >= counted, "it goes on"

        assert reload("--use_file", f"--file_path={second}")["changed"]
        assert [one["name"] for one in daemon.ask("exporters")["exporters"]] == ["file"]
        with pytest.raises(OSError, match="refused"):
            scrape(third)


def counter(page: str) -> float:
    """How often the CPUs switched since the daemon began; 0 while it is not on the page."""
    return float((re.findall(r"^dynolog_context_switches_total (\S+)$", page, re.MULTILINE) or ["0"])[0])


def scrape(port: int) -> str:
    """The Prometheus page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        return str(page.read().decode())


def test_a_bad_file_of_rules_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    rules = tmp_path / "exporters.toml"
    rules.write_text("[prometeus]\n")
    command = [sys.executable, "-m", "dynolog.daemon.main", "--port=0", f"--exporters_config={rules}"]
    for check in ([], ["--check"]):
        done = subprocess.run([*command, *check], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2
        assert "did you mean prometheus?" in done.stderr


def test_a_second_daemon_with_the_same_spool_does_not_start(tmp_path: Path) -> None:
    flags = ("--use_otlp", f"--otlp_endpoint=http://127.0.0.1:{free_port()}", f"--spool_dir={tmp_path / 'spool'}")
    with running_daemon(tmp_path, *flags):
        command = [sys.executable, "-m", "dynolog.daemon.main", "--port=0", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert "another dynolog keeps its records in" in done.stderr
