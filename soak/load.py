"""The load: simulated trainers that poll, RPC requests, or a floor to compare with.

Prints one JSON line a second, and ends with its standard input.

load.py trainers --n 512 --interval 5
load.py rpc --socket PATH --per-s 50
load.py floor: an echo between two processes, 20 times a second: what no daemon could do better on this machine at this moment
A poll that has no answer after --lost-after seconds is lost. A line on the standard input makes the trainers forget what they wait for:
the daemon was killed, and their requests with it.
"""

import argparse
import heapq
import json
import os
import selectors
import socket
import struct
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from trainers import HEADER, REPLY_WINDOW_S, Trainer

# The daemon is gone or its queue is full.
_RETRY_S = 0.1
_LENGTH = struct.Struct("=i")


class Report:
    """Counts of one second."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.longest_s = 0.0
        self._next_s = time.monotonic() + 1

    def took(self, seconds: float) -> None:
        """An answer came after so long."""
        self.counts["answered"] += 1
        self.counts["late"] += seconds > REPLY_WINDOW_S
        self.longest_s = max(self.longest_s, seconds)

    def print_when_due(self, now_s: float) -> None:
        """Once a second."""
        if now_s >= self._next_s:
            print(json.dumps({**self.counts, "longest_ms": round(self.longest_s * 1e3, 1)}), flush=True)
            self.counts.clear()
            self.longest_s = 0.0
            self._next_s = now_s + 1


class Crowd:
    """All trainers, on one loop."""

    def __init__(self, count: int, interval_s: float, lost_after_s: float) -> None:
        namespace = argparse.Namespace(job_id=0, ancestors=[1], socket_dir=None, warmup=5.0, write=False)
        self._trainers = [Trainer(index, namespace) for index in range(count)]
        self._interval_s = interval_s
        self._lost_after_s = lost_after_s
        self._forgotten: Counter[int] = Counter()
        self._report = Report()
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)
        for trainer in self._trainers:
            self._selector.register(trainer.sock, selectors.EVENT_READ, trainer)
        now = time.monotonic()
        self._due = [(now + interval_s * index / count, index) for index in range(count)]
        heapq.heapify(self._due)

    def run(self) -> None:
        """Until the standard input ends."""
        while True:
            now = time.monotonic()
            while self._due[0][0] <= now:
                _, index = heapq.heappop(self._due)
                pause_s = self._interval_s if self._poll(self._trainers[index], now) else _RETRY_S
                heapq.heappush(self._due, (now + pause_s, index))
            self._report.print_when_due(now)
            for key, _ in self._selector.select(max(min(self._due[0][0] - now, 0.2), 0)):
                if key.data:
                    self._answer(key.data)
                elif not os.read(0, 100):
                    return
                else:
                    self._forget()

    def close(self) -> None:
        """End the processes that stand for trainers."""
        for trainer in self._trainers:
            trainer.die()

    def _poll(self, trainer: Trainer, now: float) -> bool:
        """Whether it has sent or still waits."""
        if trainer.sent_at is not None:
            if now - trainer.sent_at < self._lost_after_s:
                return True
            self._report.counts["lost"] += 1
            trainer.sent_at = None
        sent = trainer.poll(now)
        self._report.counts["sent" if sent else "unsent"] += 1
        return sent

    def _answer(self, trainer: Trainer) -> None:
        try:
            data = trainer.sock.recv(65536)
        except OSError:
            return
        if trainer.sent_at is None:
            self._report.counts["unasked"] += not self._forgotten[trainer.pid]
            self._forgotten[trainer.pid] -= self._forgotten[trainer.pid] > 0
            return
        self._report.took(time.monotonic() - trainer.sent_at)
        trainer.sent_at = None
        self._report.counts["bad"] += len(data) < HEADER.size

    def _forget(self) -> None:
        for trainer in self._trainers:
            # Should the answer be on its way all the same, then nobody asked twice.
            self._forgotten[trainer.pid] += trainer.sent_at is not None
            trainer.sent_at = None


def call(path: str, request: dict[str, Any], timeout_s: float = 30.0) -> dict[str, Any]:
    """One request over the unix socket. Raises OSError, ValueError."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout_s)
        sock.connect(path)
        body = json.dumps(request).encode()
        sock.sendall(_LENGTH.pack(len(body)) + body)
        with sock.makefile("rb") as stream:
            (length,) = _LENGTH.unpack(stream.read(_LENGTH.size).ljust(_LENGTH.size, b"\0"))
            answer: dict[str, Any] = json.loads(stream.read(length))
            return answer


def scrape(port: int, timeout_s: float) -> None:
    """Prometheus' request. Raises OSError."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout_s) as answer:
        answer.read()


def ask(path: str, per_s: float, scraped_port: int, timeout_s: float) -> None:
    """Requests one after another, most of them cheap, and a scrape for each fifty, until the standard input ends."""
    report, selector = Report(), selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    kinds: list[dict[str, Any]] = [{"fn": "getStatus"}] * 8 + [
        {"fn": "getMetrics"},
        {"fn": "getStatus", "verbose": True},
    ]
    number, due = 0, time.monotonic()
    while not (selector.select(max(due - time.monotonic(), 0)) and not os.read(0, 100)):
        started = time.monotonic()
        due = max(due + 1 / per_s, started - 1)
        try:
            if scraped_port and number % 50 == 0:
                scrape(scraped_port, timeout_s)
            else:
                call(path, kinds[number % len(kinds)], timeout_s)
            report.took(time.monotonic() - started)
        except (OSError, ValueError):
            report.counts["failed"] += 1
        number += 1
        report.print_when_due(time.monotonic())


def measure_floor() -> None:
    """Until the standard input ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    if os.fork() == 0:
        ours.close()
        while theirs.recv(100) != b"end":
            theirs.send(b"echo")
        os._exit(0)
    report, selector = Report(), selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    while not (selector.select(0.05) and not os.read(0, 100)):
        started = time.monotonic()
        ours.send(b"echo")
        ours.recv(100)
        report.took(time.monotonic() - started)
        report.print_when_due(time.monotonic())
    ours.send(b"end")
    os.wait()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("trainers", "rpc", "floor"))
    parser.add_argument("--n", type=int, default=512)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--socket", default="")
    parser.add_argument("--per-s", type=float, default=50.0)
    parser.add_argument("--scrape", type=int, default=0)
    parser.add_argument("--lost-after", type=float, default=30.0)
    options = parser.parse_args()
    if options.kind == "rpc":
        ask(options.socket, options.per_s, options.scrape, options.lost_after)
        return
    if options.kind == "floor":
        measure_floor()
        return
    crowd = Crowd(options.n, options.interval, options.lost_after)
    try:
        crowd.run()
    finally:
        crowd.close()


if __name__ == "__main__":
    main()
