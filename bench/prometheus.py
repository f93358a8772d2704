"""What a scrape costs: 256 CPUs with --per_cpu, 16 NICs, 64 disks, 8 GPUs; OpenMetrics in gzip, as Prometheus asks for it.

Prints one JSON object, in ms: the first scrape after a report and a repeated one, whole, over HTTP; the CPU time of putting a report in,
of making the page, of the client library for the same samples, and of the bare join of lines that are there already;
`floor_ms` is a scrape of a server that only sends as many bytes.
"""

import argparse
import http.client
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from prometheus_client.openmetrics.exposition import generate_latest

from dynolog.exporters.prometheus.library import Negotiation
from dynolog.exporters.prometheus.names import Families
from dynolog.exporters.prometheus.series import SeriesStore
from dynolog.exporters.prometheus.server import ScrapeServer, listen
from dynolog.model.clock import SystemClock
from dynolog.model.record import Record
from fakes.prometheus import OWNERS, big_host_records, catalogue

HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    "Accept-Encoding": "gzip",
}


def median(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]


def cpu_ms(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * 1e3


def scrape_ms(port: int) -> float:
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics", headers=HEADERS)
    assert len(connection.getresponse().read()) > 1000
    connection.close()
    return (time.perf_counter() - started) * 1e3


def floor_ms(body: bytes, rounds: int) -> float:
    """A scrape of a server that accepts, reads once and sends `body`, nothing else."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(rounds):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        times = [scrape_ms(listener.getsockname()[1]) for _ in range(rounds)]
        thread.join()
    return median(times)


def make_store(style: str) -> SeriesStore:
    metrics = catalogue()
    return SeriesStore(
        metrics, Families(metrics, style), SystemClock(), owners=OWNERS, common_labels={}, hostname="bench"
    )


def put_all(store: SeriesStore, records: list[Record]) -> None:
    for record in records:
        store.put(record)


def measure(records: list[Record], rounds: int) -> dict[str, object]:
    store = make_store("standard")
    negotiation = Negotiation(store)
    listener = listen("127.0.0.1", 0)
    server = ScrapeServer(listener, negotiation.answer)
    port = listener.getsockname()[1]
    first, repeated, put, page, library, join = [], [], [], [], [], []
    lines: list[str] = []
    for _ in range(rounds):
        put.append(cpu_ms(lambda: put_all(store, records)))
        first.append(scrape_ms(port))
        repeated.append(scrape_ms(port))
        put_all(store, records)
        page.append(cpu_ms(lambda: negotiation.pages.page(openmetrics=True, compressed=False)))
        library.append(cpu_ms(lambda: generate_latest(negotiation.registry)))  # type: ignore[no-untyped-call]
        lines[:] = [sample.line() for _, samples in store.view().families for sample in samples]
        join.append(cpu_ms(lambda: "".join(lines).encode()))
    server.close()
    body = negotiation.pages.page(openmetrics=True, compressed=True)
    floor = floor_ms(body, rounds)
    return {
        "samples": len(lines),
        "page_bytes": len(negotiation.pages.page(openmetrics=True, compressed=False)),
        "gzip_bytes": len(body),
        "first_ms": round(median(first), 2),
        "repeated_ms": round(median(repeated), 2),
        "floor_ms": round(floor, 2),
        "put_cpu_ms": round(min(put), 3),
        "page_cpu_ms": round(min(page), 3),
        "library_cpu_ms": round(min(library), 3),
        "join_cpu_ms": round(min(join), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dynolog-bench-") as directory:
        records = big_host_records(Path(directory))
    print(json.dumps({"bench": "prometheus", **measure(records, options.rounds)}))


if __name__ == "__main__":
    main()
