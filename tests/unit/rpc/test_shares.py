"""No caller takes from the others what all of them need: threads, descriptors, connections."""

import asyncio
import contextlib
import functools
import json
import os
import socket
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynolog.model.trace_request import Caller
from dynolog.rpc import fetch
from dynolog.rpc.client import Target, call
from dynolog.rpc.framing import frame
from dynolog.rpc.messages import ListProcesses, ProcessesReply
from dynolog.rpc.methods import MAX_FETCHES, MAX_WAITS
from dynolog.rpc.services import WrittenTrace
from fakes.rpc_daemon import RpcThread, running_server
from fakes.services import FakeServices, capture

FETCH = frame(b'{"fn":"fetchTrace","capture_id":"c1"}')
WAIT = frame(b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}')


@pytest.fixture
def fakes() -> FakeServices:
    return FakeServices()


@pytest.fixture
def written(fakes: FakeServices, tmp_path: Path) -> Path:
    path = tmp_path / "t.json"
    path.write_bytes(os.urandom(1 << 20) * 4)
    fakes.traces.files["c1"] = str(path)
    return path


def connect(daemon: RpcThread) -> socket.socket:
    return socket.create_connection(("127.0.0.1", daemon.server.port), timeout=30)


def receive(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def ask(daemon: RpcThread, data: bytes) -> Any:
    with connect(daemon) as sock:
        sock.sendall(data)
        return json.loads(receive(sock)[4:])


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def holds(count: int, things: list[int]) -> bool:
    return len(things) == count


def descriptors_of(path: Path) -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}") == str(path)
    return count


def whole_trace_comes(daemon: RpcThread) -> bool:
    with connect(daemon) as sock:
        sock.sendall(FETCH)
        return len(receive(sock)) > 4 << 20


def hanging_reads(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, list[int]]:
    """Reads of traces that hang until the event, as those of a file system in user space whose owner wills it; and the reads there were."""
    answers, reads = threading.Event(), list[int]()

    def pread(descriptor: int, length: int, position: int) -> bytes:
        reads.append(descriptor)
        answers.wait(60)
        return os.pread(descriptor, length, position)

    monkeypatch.setattr(fetch, "os", types.SimpleNamespace(pread=pread, path=os.path))
    monkeypatch.setattr(fetch, "READ_TIMEOUT_S", 0.05)
    return answers, reads


def test_disks_that_hang_hold_up_no_token_and_keep_their_descriptors(
    fakes: FakeServices, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer's disk is its user's: whoever fetches from many that hang must not lock out those who sign their requests."""
    token = tmp_path / "token"
    token.write_text("correct horse battery staple")
    token.chmod(0o600)
    answers, reads = hanging_reads(monkeypatch)
    with running_server(fakes, rpc_token_file=str(token)) as daemon:
        for number in range(1, MAX_FETCHES + 1):
            with connect(daemon) as sock:
                sock.sendall(FETCH)
                assert receive(sock).endswith(b'"chunk_bytes":262144,"status":"ok"}')
            eventually(functools.partial(holds, number, reads))
        signed = Target(port=daemon.server.port, hostname="127.0.0.1", token_file=str(token), timeout_s=30)
        assert call(signed, ListProcesses(), ProcessesReply).trainers == ()
        assert descriptors_of(written) == MAX_FETCHES, "none is closed under a read"
        refused = ask(daemon, FETCH)
        assert (refused["code"], f"of uid {os.geteuid()}" in refused["error"]) == ("busy", True)
        answers.set()
        eventually(lambda: descriptors_of(written) == 0)
        assert whole_trace_comes(daemon)


def test_files_that_hang_while_they_are_opened_count_until_they_are_open(
    fakes: FakeServices, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a thread, also when its client has long gone."""
    answers, opened = threading.Event(), fakes.traces.open_written
    entered: list[int] = []

    async def hang(capture_id: str, caller: Caller) -> WrittenTrace:
        entered.append(len(entered))
        await asyncio.to_thread(answers.wait, 60)
        return await opened(capture_id, caller)

    monkeypatch.setattr(fakes.traces, "open_written", hang)
    with running_server(fakes) as daemon:
        for number in range(1, MAX_FETCHES + 1):
            with connect(daemon) as sock:
                sock.sendall(FETCH)
                eventually(functools.partial(holds, number, entered))
        assert ask(daemon, FETCH)["code"] == "busy"
        answers.set()
        # Those whose clients have gone are opened, closed, and counted no longer.
        eventually(lambda: whole_trace_comes(daemon))
        eventually(lambda: descriptors_of(written) == 0)


def test_waits_of_one_user_leave_places_for_others(fakes: FakeServices) -> None:
    """A wait takes a connection for a minute, and they are counted: one user's scripts must not keep root from tracing."""
    fakes.traces.publish(capture())
    with running_server(fakes) as daemon, contextlib.ExitStack() as stack:
        waiters = [stack.enter_context(connect(daemon)) for _ in range(MAX_WAITS)]
        for waiter in waiters:
            waiter.sendall(WAIT)
        eventually(lambda: fakes.traces.waiting == MAX_WAITS)
        assert ask(daemon, WAIT)["code"] == "busy"
        daemon.run(fakes.traces.publish, capture())
        assert all(b'"version":1' in receive(waiter) for waiter in waiters)
        assert ask(daemon, WAIT)["status"] == "ok"
