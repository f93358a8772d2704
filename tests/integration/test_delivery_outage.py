"""A real process that makes records and is killed while its destination is away; afterwards everything is there.

Takes 3 s of outage at 100 records a second; with DYNOLOG_OUTAGE_S=600 it is ten minutes at one a second.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from fakes.http_receiver import HttpReceiver, answer, http_receiver

OUTAGE_S = float(os.environ.get("DYNOLOG_OUTAGE_S", "3"))
RECORDS_PER_S = 100 if OUTAGE_S <= 60 else 1

SENDER = """
import json, os, signal, sys, threading, time
sys.path.insert(0, sys.argv[4])
from fakes.scripted_transport import delivery_context
from dynolog.exporters.delivery.http_transport import HttpTransport
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.sending import NetworkExporter
from dynolog.model.clock import SystemClock
from dynolog.model.record import Record
from dynolog.pipeline.fanout import Fanout

class Encoder:
    def encode(self, records):
        # What is encoded again would differ.
        body = {"numbers": [record.wall_ns for record in records], "nonce": os.urandom(8).hex()}
        return [Payload(body=json.dumps(body).encode(), records=len(records))]

url, spool, number, _, pause_s = sys.argv[1:]
number = int(number)
exporter = NetworkExporter(
    "outage", url, Encoder(), HttpTransport(url, timeout_s=2.0), delivery_context(spool_dir=spool), gzip=True
)
fanout = Fanout([("outage", exporter)], SystemClock())
ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
while not ended.wait(float(pause_s)):
    print(number, flush=True)
    fanout.put(Record(wall_ns=number, source="kernel", values={"n": number}))
    number += 1
fanout.close(20.0)
"""


class Sender:
    """The process; its last number as it printed it."""

    def __init__(self, url: str, spool: Path, first: int) -> None:
        tests = str(Path(__file__).parent.parent)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SENDER, url, str(spool), str(first), tests, str(1 / RECORDS_PER_S)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.last = first - 1
        self.progressed = threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                with self.progressed:
                    self.last = int(line)
                    self.progressed.notify_all()

    def wait_for(self, count: int) -> None:
        """Until it has made this many more records."""
        with self.progressed:
            goal = self.last + count
            assert self.progressed.wait_for(lambda: self.last >= goal, 60 + 2 * count / RECORDS_PER_S)

    def end(self, number: signal.Signals) -> int:
        """Send a signal; the last number that it made."""
        self.process.send_signal(number)
        self.reader.join(30)
        assert self.process.wait(30) in (0, -number)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.last


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("overloaded", [False, True], ids=["nobody listens", "429 and 503 meanwhile"])
def test_an_outage_with_two_kills_loses_nothing_and_repeats_only_what_was_in_flight(
    tmp_path: Path, overloaded: bool
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    spool = tmp_path / "spool"
    bodies: defaultdict[int, list[bytes]] = defaultdict(list)
    order: list[int] = []

    def take(receiver: HttpReceiver) -> None:
        for request in receiver.requests:
            for number in json.loads(request.body)["numbers"]:
                bodies[number].append(request.raw)
                order.append(number)

    sender = Sender(url, spool, 0)
    try:
        with http_receiver(port=port) as first:
            first.wait_for(5)
        kills = []
        for turn in range(2):
            if overloaded:
                with http_receiver(port=port) as busy:
                    busy.then = answer(429, Retry_After="1") if turn else answer(503)
                    sender.wait_for(int(OUTAGE_S / 2 * RECORDS_PER_S))
            else:
                sender.wait_for(int(OUTAGE_S / 2 * RECORDS_PER_S))
            kills.append(sender.end(signal.SIGKILL))
            sender = Sender(url, spool, kills[-1] + 1)
        sender.wait_for(20)
        with http_receiver(port=port) as second:
            last = sender.end(signal.SIGTERM)
    finally:
        sender.process.kill()
        sender.process.wait()
    take(first)
    take(second)
    missing = [number for number in range(last + 1) if number not in bodies]
    # A kill may fall between the making of a record and its write: the last second is what may be lost then.
    assert all(any(0 <= kill - number < RECORDS_PER_S for kill in kills) for number in missing)
    assert len(missing) <= 6, missing
    assert set(bodies) <= set(range(last + 1))
    repeated = {number: sent for number, sent in bodies.items() if len(sent) > 1}
    assert all(len(set(sent)) == 1 for sent in repeated.values())
    # One request may be in flight at each kill, and when the receiver goes.
    assert len({sent[0] for sent in repeated.values()}) <= 4
    first_seen = list(dict.fromkeys(order))
    assert first_seen == sorted(first_seen)
    assert not list(spool.glob("outage/*.spool"))
