"""What one exporter costs (OTLP: otlp.py; Prometheus: prometheus.py): records per second through it, CPU of 1,000 records, memory of a full queue. Prints one JSON object.

exporters.py NAME [--records N]     one of DESTINATIONS; its receiver runs in a process of its own, so that its CPU is not counted
exporters.py --sink KIND [PATH]     such a receiver: takes everything, prints its port when it listens
"""

import argparse
import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from dynolog.collectors.registry import COLLECTORS
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.glog import GlogSink
from dynolog.daemon.log_lines import lines_of
from dynolog.exporters.delivery.sending import NetworkExporter
from dynolog.exporters.registry import EXPORTERS
from dynolog.exporters.spec import ExporterContext
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.metric import Catalogue, Kind, Scope
from dynolog.model.record import Record
from dynolog.pipeline.delivery import Exporter

BATCH = 8
LOGS: list[GlogSink] = []
DEVICES = {Scope.HOST: ("",), Scope.NODE: ("0", "1")}
SOME_DEVICES = ("a0", "a1", "a2", "a3")
LEFT_OUT = (Scope.GPU, Scope.CPU, Scope.RDMA)
UNUSED = "127.0.0.1:9"  # the discard port: nobody listens


class Destination(NamedTuple):
    """The exporter, its receiver, its flags (`{port}` and `{path}` are filled in), and flags under which nobody is there."""

    exporter: str
    sink: str
    flags: Mapping[str, FlagValue]
    absent: Mapping[str, FlagValue] = MappingProxyType({})


DESTINATIONS = {
    "log (glog)": Destination("log", "", {}),
    "log (json)": Destination("log", "", {"log_format": "json"}),
    "log (logfmt)": Destination("log", "", {"log_format": "logfmt"}),
    "file": Destination("file", "", {"file_path": "{path}"}),
    "StatsD": Destination("statsd", "datagram", {"statsd_address": "unix://{path}"}),
    "DogStatsD": Destination(
        "statsd",
        "datagram",
        {"statsd_address": "unix://{path}", "statsd_dialect": "dogstatsd", "statsd_max_bytes": 8192},
    ),
    "FB relay": Destination("fbrelay", "stream", {"fbrelay_port": "{port}"}, {"fbrelay_port": 9}),
    "UDS relay": Destination(
        "udsrelay", "unix", {"udsrelay_socket_path": "{path}"}, {"udsrelay_socket_path": "/nowhere"}
    ),
    "ODS": Destination("ods", "http", {"ods_url": "http://127.0.0.1:{port}/"}, {"ods_url": f"http://{UNUSED}/"}),
    "Scuba": Destination(
        "scuba", "http", {"scuba_url": "http://127.0.0.1:{port}/"}, {"scuba_url": f"http://{UNUSED}/"}
    ),
    "remote-write": Destination(
        "remote_write",
        "http",
        {"remote_write_url": "http://127.0.0.1:{port}/"},
        {"remote_write_url": f"http://{UNUSED}/"},
    ),
}


def catalogue() -> Catalogue:
    return Catalogue(metric for spec in COLLECTORS for metric in spec.metrics)


def records(metrics: Catalogue, count: int) -> list[Record]:
    """Records of a host with two nodes and four of each device; every value differs from record to record."""
    keys = [
        (metric, metric.key(device))
        for metric in metrics
        if metric.scope not in LEFT_OUT
        for device in DEVICES.get(metric.scope, SOME_DEVICES)
    ]
    intervals = {spec.name: 1_000_000_000 for spec in COLLECTORS}
    start_ns = time.time_ns()
    made = []
    for number in range(count):
        values: dict[str, int | float | str] = {}
        for place, (metric, key) in enumerate(keys):
            if metric.kind is Kind.LABEL:
                values[key] = "text"
            elif metric.kind in (Kind.RATIO, Kind.RATE):
                values[key] = (number * 37 + place * 11) % 1000 / 10.1
            else:
                values[key] = (number * 7919 + place * 104_729) % 10_000_000
        made.append(
            Record(wall_ns=start_ns + number * 1_000_000_000, source="kernel", values=values, intervals_ns=intervals)
        )
    return made


def context(metrics: Catalogue, flags: Mapping[str, FlagValue], directory: str) -> ExporterContext:
    settings = Settings(declared_flags(), flags)
    log = GlogSink(os.path.join(directory, "log"), lines=lines_of(settings.text("log_format")))
    LOGS.append(log)
    owners = {(metric.name, metric.scope): spec.name for spec in COLLECTORS for metric in spec.metrics}
    return ExporterContext(
        settings=settings,
        catalogue=metrics,
        hostname="gpu17",
        write_log=log.write_at_info,
        write_line=log.write_line,
        owners=owners,
    )


def make(destination: Destination, flags: Mapping[str, FlagValue], metrics: Catalogue, directory: str) -> Exporter:
    (spec,) = [spec for spec in EXPORTERS if spec.name == destination.exporter]
    return spec.factory(context(metrics, flags, directory))


def filled(flags: Mapping[str, FlagValue], port: int, path: str) -> dict[str, FlagValue]:
    """The flags with what is known only now."""
    made: dict[str, FlagValue] = {}
    for name, value in flags.items():
        if value == "{port}":
            made[name] = port
        else:
            made[name] = value.format(port=port, path=path) if isinstance(value, str) else value
    return made


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def deliver(exporter: Exporter, made: list[Record]) -> None:
    """Give all records, never more than the queue takes, and wait until they are there."""
    for start in range(0, len(made), BATCH):
        batch = made[start : start + BATCH]
        exporter.export(batch)
        LOGS[0].flush(5)
        if isinstance(exporter, NetworkExporter):
            left = 0 if start + BATCH >= len(made) else 50
            while exporter.progress().queued > left:
                time.sleep(0.0005)


def measure(name: str, count: int) -> dict[str, Any]:
    destination = DESTINATIONS[name]
    metrics = catalogue()
    made = records(metrics, count)
    with tempfile.TemporaryDirectory(prefix="dxb") as directory, sink(destination.sink, directory) as (port, path):
        exporter = make(destination, filled(destination.flags, port, path), metrics, directory)
        deliver(exporter, made[:BATCH])  # connections, imports
        start, start_cpu = time.perf_counter(), time.process_time()
        deliver(exporter, made[BATCH:])
        seconds, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
        exporter.close()
        progress = exporter.progress() if isinstance(exporter, NetworkExporter) else None
        if progress is not None and progress.sent != count:
            sys.exit(f"{name}: {progress}")
        floor_start = time.process_time()
        for record in made[BATCH:]:
            msgspec.json.encode(record.values)
        floor_s = time.process_time() - floor_start
        answer: dict[str, Any] = {
            "values": len(made[0].values),
            "records_per_s": round((count - BATCH) / seconds),
            "cpu_ms_per_1000": round(cpu_s / (count - BATCH) * 1e6, 1),
            "floor_ms_per_1000": round(floor_s / (count - BATCH) * 1e6, 1),
        }
        if destination.absent:
            answer |= full_queue(make(destination, destination.absent, metrics, directory), made)
    return answer


def full_queue(exporter: Exporter, made: list[Record]) -> dict[str, Any]:
    """What a queue holds and costs when nobody takes anything."""
    assert isinstance(exporter, NetworkExporter)
    before = rss_bytes()
    dropped = False
    while not dropped:
        for start in range(0, len(made), BATCH):
            exporter.export(made[start : start + BATCH])
        dropped = bool(exporter.progress().dropped_by)
    progress = exporter.progress()
    held = rss_bytes() - before
    exporter.end_by(time.monotonic_ns())
    exporter.close()
    return {
        "queue_records": progress.queued,
        "queue_mb": round(progress.queued_bytes / 1e6, 1),
        "rss_mb": round(held / 1e6, 1),
    }


# --- receivers ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def sink(kind: str, directory: str) -> Iterator[tuple[int, str]]:
    """A receiver in a process of its own: its port, and the path that its socket or a file may have."""
    path = os.path.join(directory, "sink")
    if not kind:
        yield 0, path
        return
    started = subprocess.Popen(
        [sys.executable, __file__, "--sink", kind, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    try:
        yield int(started.stdout.readline()), path
    finally:
        started.kill()
        started.communicate()


def run_sink(kind: str, path: str) -> None:
    if kind == "datagram":
        receiving = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiving.bind(path)
        print(0, flush=True)
        while True:
            receiving.recv(65536)
    if kind == "unix":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
        listening.listen()
        print(0, flush=True)
    else:
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
    take = take_http if kind == "http" else take_stream
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=take, args=(connection,), daemon=True).start()


def take_stream(connection: socket.socket) -> None:
    while connection.recv(1 << 18):
        pass


def take_http(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            if not (more := connection.recv(1 << 18)):
                return
            data += more
        head, _, data = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        missing = length - len(data)
        while missing > 0:
            if not (more := connection.recv(1 << 18)):
                return
            missing -= len(more)
        data = b""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=DESTINATIONS)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--sink", nargs=2, default=())
    arguments = parser.parse_args()
    if arguments.sink:
        run_sink(*arguments.sink)
    print(json.dumps(measure(arguments.name, arguments.records)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
