"""What OTLP costs: records/s, and CPU time per 1,000 records from a record to an answered request, beside the floor: serialising a
message that is there already, and writing its bytes to the same receiver over a bare socket.

otlp.py [--records N]     prints one JSON object
otlp.py --sink http|grpc  the receiver: prints its port, answers everything with success
"""

import argparse
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import msgspec
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from dynolog.exporters.delivery.sending import NetworkExporter
from dynolog.exporters.otlp.making import metrics_exporter
from dynolog.exporters.otlp.metrics import MetricsEncoder
from dynolog.model.metric import Kind, Scope
from dynolog.model.record import Record
from fakes.exporter_context import exporter_context
from fakes.otlp_catalogue import OWNERS, full_catalogue

SECOND = 10**9
# Below --exporter_queue_mb, so that nothing is lost.
MOST_QUEUED = 50
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
RESOURCE = {"service.name": "dynolog", "host.name": "bench"}
DEVICES = {Scope.NIC: 4, Scope.DISK: 4, Scope.FILESYSTEM: 4, Scope.SENSOR: 4, Scope.NODE: 2, Scope.COLLECTOR: 18}


def records(count: int) -> list[Record]:
    """Kernel records as a host with a few devices of each kind gives them, one a second."""
    keys = []
    for metric in full_catalogue():
        if metric.kind is Kind.LABEL or metric.scope in (Scope.GPU, Scope.RDMA, Scope.CPU, Scope.PCI):
            continue
        keys += [
            (metric.key(number if metric.scope is Scope.NODE else f"dev{number}"), metric.kind is Kind.DELTA)
            for number in range(DEVICES.get(metric.scope, 1))
        ]
    intervals = dict.fromkeys(set(OWNERS.values()), SECOND)
    start_ns = time.time_ns()
    return [
        Record(
            wall_ns=start_ns + second * SECOND,
            source="kernel",
            values={
                key: number * second if is_delta else number + second / 7 for number, (key, is_delta) in enumerate(keys)
            },
            intervals_ns=intervals,
        )
        for second in range(count)
    ]


def sink_http() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
                if line == b"\r\n":
                    stream.read(size)
                    connection.sendall(ANSWER)


def sink_grpc() -> None:
    import grpc  # noqa: PLC0415 - the other sink does without

    server = grpc.server(ThreadPoolExecutor(2))
    handler: Any = grpc.unary_unary_rpc_method_handler(lambda _body, _context: b"")
    service = "opentelemetry.proto.collector.metrics.v1.MetricsService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
    port = server.add_insecure_port("localhost:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


@contextmanager
def sink(kind: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, __file__, "--sink", kind], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.kill()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of CPU time of this process, threads included."""
    clock_s, cpu_s = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock_s, time.process_time() - cpu_s


def exporter(kind: str, given: list[Record], *, gzip: bool = False) -> dict[str, float]:
    with sink(kind) as port:
        context = exporter_context(
            None,
            (),
            "bench",
            (),
            otlp_endpoint=f"http://localhost:{port}" if kind == "grpc" else f"http://127.0.0.1:{port}",
            otlp_protocol="grpc" if kind == "grpc" else "http/protobuf",
            otlp_compression="gzip" if gzip else "none",
            otlp_max_queue_size=len(given),
        )
        context = msgspec.structs.replace(context, catalogue=full_catalogue(), owners=OWNERS)
        sender = metrics_exporter(context, {})
        assert isinstance(sender, NetworkExporter)
        sender.export(given[:1])
        while sender.progress().sent < 1:
            time.sleep(0.001)
        clock_s, cpu_s = timed(lambda: send(sender, given[1:]))
        sender.end_by(time.monotonic_ns() + SECOND)
        sender.close()
    return per_thousand(clock_s, cpu_s, len(given) - 1)


def send(sender: NetworkExporter, given: list[Record]) -> None:
    deadline_s = time.monotonic() + 120
    for record in given:
        sender.export([record])
        while sender.progress().queued > MOST_QUEUED:
            time.sleep(0.002)
    while sender.progress().queued:
        assert time.monotonic() < deadline_s, sender.progress()
        time.sleep(0.002)
    assert not sender.progress().dropped_by


def per_thousand(clock_s: float, cpu_s: float, count: int) -> dict[str, float]:
    return {"records_per_s": round(count / clock_s), "cpu_ms_per_1000": round(cpu_s * 1e6 / count, 1)}


def floor(given: list[Record]) -> dict[str, float]:
    encoder = MetricsEncoder(full_catalogue(), OWNERS, RESOURCE)
    requests = [
        ExportMetricsServiceRequest.FromString(payload.body) for payload in encoder.encode(given[:1]) for _ in given
    ]
    with sink("http") as port, socket.create_connection(("127.0.0.1", port)) as connection:

        def post() -> None:
            for request in requests:
                body = request.SerializeToString()
                head = f"POST /v1/metrics HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                assert connection.recv(4096).endswith(b"\r\n\r\n")

        clock_s, cpu_s = timed(post)
    return per_thousand(clock_s, cpu_s, len(given))


def encoding(given: list[Record]) -> dict[str, float]:
    encoder = MetricsEncoder(full_catalogue(), OWNERS, RESOURCE)
    encoder.encode(given[:1])
    clock_s, cpu_s = timed(lambda: [encoder.encode([record]) for record in given])
    return per_thousand(clock_s, cpu_s, len(given))


def full_queue(given: list[Record]) -> dict[str, float]:
    """Memory of a queue of records that nobody takes."""
    context = exporter_context(None, (), "bench", (), otlp_endpoint="http://127.0.0.1:1", otlp_max_queue_size=1000)
    sender = metrics_exporter(msgspec.structs.replace(context, catalogue=full_catalogue(), owners=OWNERS), {})
    assert isinstance(sender, NetworkExporter)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for record in given:
        sender.export([record])
    queued_records = sender.progress().queued
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    queued = sender.progress().queued_bytes
    sender.end_by(0)
    sender.close()
    return {
        "queued_records": queued_records,
        "queued_mb": round(queued / 1e6, 1),
        "grown_mb": round(grown_kb / 1024, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--sink", choices=("http", "grpc"))
    arguments = parser.parse_args()
    if arguments.sink:
        (sink_grpc if arguments.sink == "grpc" else sink_http)()
    given = records(arguments.records)
    answer = {
        "values": len(given[0].values),
        "queue": full_queue(given),
        "floor": floor(given),
        "encode": encoding(given),
        "http": exporter("http", given),
        "gzip": exporter("http", given, gzip=True),
        "grpc": exporter("grpc", given),
    }
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
