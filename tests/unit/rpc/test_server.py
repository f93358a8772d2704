"""A live server on this machine, and clients that behave in every way."""

import asyncio
import contextlib
import functools
import gc
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dynolog.model.flag import Settings
from dynolog.model.trace_request import Caller
from dynolog.rpc.connection import RECEIVE_BYTES, Connection
from dynolog.rpc.connection_table import ConnectionTable
from dynolog.rpc.flags import FLAGS
from dynolog.rpc.framing import LENGTH, frame
from dynolog.rpc.server import RpcServer
from dynolog.rpc.services import WrittenTrace
from fakes.rpc_daemon import RpcThread, running_server
from fakes.services import FakeServices, capture, trainer

STATUS = b'{"fn":"getStatus"}'


@pytest.fixture
def fakes() -> FakeServices:
    return FakeServices()


@pytest.fixture
def daemon(fakes: FakeServices) -> Iterator[RpcThread]:
    with running_server(fakes) as thread:
        yield thread


def connect(daemon: RpcThread) -> socket.socket:
    return socket.create_connection(("127.0.0.1", daemon.server.port), timeout=10)


def receive(sock: socket.socket) -> bytes:
    """Everything until the server closes."""
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def ask(daemon: RpcThread, data: bytes) -> Any:
    with connect(daemon) as sock:
        sock.sendall(data)
        reply = receive(sock)
    assert LENGTH.unpack(reply[:4])[0] == len(reply) - 4
    return json.loads(reply[4:])


def eventually(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def held(daemon: RpcThread) -> int:
    return int(daemon.run(len, daemon.server.connections))


def holds(daemon: RpcThread, count: int) -> bool:
    return held(daemon) == count


def is_closed(sock: socket.socket) -> bool:
    """Whether the other side has ended it, after whatever it still said."""
    try:
        return receive(sock) is not None
    except ConnectionResetError:
        return True
    except (TimeoutError, BlockingIOError):
        return False


def test_one_request_one_reply_then_the_close(daemon: RpcThread) -> None:
    with connect(daemon) as sock:
        sock.sendall(frame(STATUS))
        assert receive(sock) == frame(b'{"status":1}')
    assert held(daemon) == 0


def test_header_and_body_of_a_reply_come_in_one_piece(daemon: RpcThread) -> None:
    with connect(daemon) as sock:
        sock.sendall(frame(STATUS))
        assert sock.recv(100) == frame(b'{"status":1}')


def test_both_loopbacks_and_the_unix_socket_serve(fakes: FakeServices, tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    with running_server(fakes, rpc_unix_socket=path) as daemon:
        assert path in daemon.server.addresses
        for family, where in ((socket.AF_INET, ("127.0.0.1", daemon.server.port)), (socket.AF_UNIX, path)):
            with socket.socket(family) as sock:
                sock.connect(where)
                sock.sendall(frame(b'{"fn":"setKinetOnDemandRequest","config":""}'))
                assert b"processesMatched" in receive(sock)
    assert [caller.uid for _, caller in fakes.traces.requests] == [os.geteuid()] * 2
    assert not os.path.exists(path)


def test_a_unix_socket_that_cannot_be_had_is_said_and_the_rest_serves(fakes: FakeServices) -> None:
    with running_server(fakes, rpc_unix_socket="/proc/none/d.sock") as daemon:
        assert "goes on without it" in daemon.server.notices[0]
        assert ask(daemon, frame(STATUS)) == {"status": 1}


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_request_in_small_pieces_is_put_together(daemon: RpcThread, size: int) -> None:
    data = frame(STATUS)
    with connect(daemon) as sock:
        for start in range(0, len(data), size):
            sock.sendall(data[start : start + size])
        assert receive(sock) == frame(b'{"status":1}')


def test_a_client_that_shuts_its_side_down_gets_its_reply(daemon: RpcThread) -> None:
    with connect(daemon) as sock:
        sock.sendall(frame(b'{"fn":"setKinetOnDemandRequest","config":""}'))
        sock.shutdown(socket.SHUT_WR)
        assert b"processesMatched" in receive(sock)


def test_a_refusal_survives_what_comes_later(daemon: RpcThread) -> None:
    with connect(daemon) as sock:
        sock.sendall(LENGTH.pack(0))
        assert b"bad_frame" in sock.recv(500)
        eventually(lambda: len(daemon.server.connections.lingering) == 1)
        sock.sendall(b"more")
        sock.shutdown(socket.SHUT_WR)
        assert receive(sock) == b""
    eventually(lambda: held(daemon) == 0)


def test_bytes_after_the_request_do_not_destroy_the_reply(daemon: RpcThread) -> None:
    for extra in (1, 100_000):
        with connect(daemon) as sock:
            sock.sendall(frame(STATUS) + b"x" * extra)
            time.sleep(0.01)  # a reset would have come by now
            assert receive(sock) == frame(b'{"status":1}')
    eventually(lambda: held(daemon) == 0)


def test_bytes_that_were_not_even_read_do_not_destroy_the_reply(daemon: RpcThread) -> None:
    """The request ends exactly where one receive ends, so that what follows is still in the kernel."""
    request = b'{"fn":"getStatus"}'.ljust(RECEIVE_BYTES - LENGTH.size)
    with connect(daemon) as sock:
        sock.sendall(frame(request) + b"x" * 100_000)
        assert receive(sock) == frame(b'{"status":1}')
    eventually(lambda: held(daemon) == 0)


def test_one_that_is_closed_before_its_answer_was_begun_leaves_nothing(fakes: FakeServices) -> None:
    async def story() -> None:
        server = RpcServer(
            asyncio.get_running_loop(), fakes.services, Settings(FLAGS, {"port": 0, "rpc_unix_socket": "none"})
        )
        ours, theirs = socket.socketpair()
        with theirs:
            ours.setblocking(False)
            theirs.sendall(frame(b'{"fn":"waitTrace","request_id":"r1"}'))
            connection = Connection(server.connections, ours)
            connection.start()
            task = connection.task
            assert task is not None
            connection.close()
            await asyncio.wait([task])
        assert len(server.connections) == 0

    asyncio.run(story())
    gc.collect()  # a coroutine that was never awaited would be reported here


def test_a_refusal_reaches_a_client_that_is_still_sending(daemon: RpcThread) -> None:
    with connect(daemon) as sock:
        sock.sendall(LENGTH.pack(3 << 20) + b"x" * (3 << 20))
        assert b"bad_frame" in receive(sock)
    assert daemon.server.connections.refused_frames == 1


def test_a_request_of_nearly_1_mib_is_served(daemon: RpcThread, fakes: FakeServices) -> None:
    config = "x" * ((1 << 20) - 100)
    ask(daemon, frame(json.dumps({"fn": "setKinetOnDemandRequest", "config": config}).encode()))
    assert fakes.traces.requests[0][0].config == config


def test_silent_connections_are_ended_in_time_and_told(fakes: FakeServices) -> None:
    with running_server(fakes, rpc_request_timeout_s=0.1) as daemon:
        silent, slow = connect(daemon), connect(daemon)
        with silent, slow:
            slow.sendall(frame(STATUS)[:9])
            assert ask(daemon, frame(STATUS)) == {"status": 1}
            assert b"timeout" in receive(silent)
            assert is_closed(slow)
        assert held(daemon) == 0


def test_a_drip_of_bytes_does_not_extend_the_time(fakes: FakeServices) -> None:
    with running_server(fakes, rpc_request_timeout_s=0.2) as daemon, connect(daemon) as sock:
        sock.sendall(LENGTH.pack(1 << 20))
        started = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() < started + 10:
                sock.sendall(b"x")
                time.sleep(0.01)
        assert time.monotonic() < started + 5


def test_beyond_the_limit_the_oldest_without_a_request_goes(fakes: FakeServices) -> None:
    with running_server(fakes, rpc_max_connections=3) as daemon, contextlib.ExitStack() as stack:
        silent = []
        for number in range(1, 4):
            silent.append(stack.enter_context(connect(daemon)))
            eventually(functools.partial(holds, daemon, number))
        silent.append(stack.enter_context(connect(daemon)))
        assert b"overloaded" in receive(silent[0])
        assert held(daemon) == 3
        for sock in silent[1:]:
            sock.sendall(frame(STATUS))
            assert receive(sock) == frame(b'{"status":1}')


def test_waiting_clients_are_not_sent_away_for_silent_ones(fakes: FakeServices) -> None:
    fakes.traces.publish(capture())
    with running_server(fakes, rpc_max_connections=4) as daemon, contextlib.ExitStack() as stack:
        waiters = [stack.enter_context(connect(daemon)) for _ in range(3)]
        for waiter in waiters:
            waiter.sendall(frame(b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}'))
        eventually(lambda: fakes.traces.waiting == 3)
        silent = [stack.enter_context(connect(daemon)) for _ in range(5)]
        assert b"overloaded" in receive(silent[0])
        late = stack.enter_context(connect(daemon))
        late.sendall(frame(b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}'))
        assert b"overloaded" in receive(late)
        for _ in range(20):
            assert ask(daemon, frame(STATUS)) == {"status": 1}
        daemon.run(fakes.traces.publish, capture())
        assert all(b'"version":1' in receive(waiter) for waiter in waiters)


def test_a_waiter_that_has_hung_up_makes_room(fakes: FakeServices) -> None:
    fakes.traces.publish(capture())
    with running_server(fakes, rpc_max_connections=1) as daemon:
        with connect(daemon) as waiter:
            waiter.sendall(frame(b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}'))
            eventually(lambda: fakes.traces.waiting == 1)
        with connect(daemon) as late:
            eventually(lambda: fakes.traces.waiting == 0)
            late.sendall(frame(STATUS))
            assert receive(late) == frame(b'{"status":1}')


def test_resets_at_every_moment_are_no_fault(daemon: RpcThread, fakes: FakeServices) -> None:
    """A request that needs to know its caller, from one that has already gone."""
    for number in range(200):
        sock = connect(daemon)
        sock.sendall(
            frame(b'{"fn":"setKinetOnDemandRequest","config":""}') if number % 2 else frame(b'{"fn":"listProcesses"}')
        )
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    eventually(lambda: held(daemon) == 0)
    assert ask(daemon, frame(STATUS)) == {"status": 1}
    assert daemon.server.methods.internal_errors == 0


def test_a_wait_holds_nothing_else(daemon: RpcThread, fakes: FakeServices) -> None:
    fakes.traces.publish(capture())
    with connect(daemon) as waiter:
        waiter.sendall(frame(b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}'))
        eventually(lambda: fakes.traces.waiting == 1)
        for _ in range(20):
            assert ask(daemon, frame(STATUS)) == {"status": 1}
        daemon.run(fakes.traces.publish, capture())
        assert b'"version":1' in receive(waiter)


def test_a_reset_waiter_is_let_go(daemon: RpcThread, fakes: FakeServices) -> None:
    fakes.traces.publish(capture())
    waiter = connect(daemon)
    waiter.sendall(frame(b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}'))
    eventually(lambda: fakes.traces.waiting == 1)
    waiter.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    waiter.close()
    eventually(lambda: fakes.traces.waiting == 0 and held(daemon) == 0)


def many_trainers(fakes: FakeServices, count: int) -> None:
    fakes.traces.registered = tuple(trainer(pid, command="x" * 400) for pid in range(count))


def test_a_large_reply_reaches_a_slow_reader_and_delays_nobody(daemon: RpcThread, fakes: FakeServices) -> None:
    many_trainers(fakes, 20_000)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", daemon.server.port))
        slow.sendall(frame(b'{"fn":"listProcesses"}'))
        eventually(lambda: held(daemon) == 1)
        for _ in range(20):
            assert ask(daemon, frame(STATUS)) == {"status": 1}
        slow.settimeout(10)
        reply = receive(slow)
    assert len(json.loads(reply[4:])["trainers"]) == 20_000


def test_one_that_never_reads_its_reply_is_ended(fakes: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectionTable, "SEND_TIMEOUT_S", 0.1)
    many_trainers(fakes, 20_000)
    with running_server(fakes) as daemon, connect(daemon) as sock:
        sock.sendall(frame(b'{"fn":"listProcesses"}'))
        eventually(lambda: held(daemon) == 1)
        eventually(lambda: held(daemon) == 0)


def test_unread_replies_together_are_bounded(fakes: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    many_trainers(fakes, 10_000)
    monkeypatch.setattr(ConnectionTable, "MAX_HELD_BYTES", 12 << 20)
    with running_server(fakes) as daemon, contextlib.ExitStack() as stack:
        for _ in range(8):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", daemon.server.port))
            sock.sendall(frame(b'{"fn":"listProcesses"}'))
        eventually(lambda: daemon.server.connections.evicted > 0)
        assert ask(daemon, frame(STATUS)) == {"status": 1}
        total = sum(daemon.run(lambda: [one.held_bytes for one in daemon.server.connections._all]))
        assert 0 < total <= 12 << 20


# --- fetchTrace ------------------------------------------------------------------------------------------------------


def descriptors_of(path: Path) -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}") == str(path)
    return count


def frames(data: bytes) -> list[bytes]:
    found = []
    while data:
        (length,) = LENGTH.unpack(data[:4])
        found.append(data[4 : 4 + length])
        data = data[4 + length :]
    return found


@pytest.fixture
def written(fakes: FakeServices, tmp_path: Path) -> Path:
    path = tmp_path / "t.json"
    path.write_bytes(os.urandom(1 << 20) * 12 + b"end")
    fakes.traces.files["c1"] = str(path)
    return path


@pytest.mark.parametrize("offset", [0, 5, 12 << 20, (12 << 20) + 3])
def test_a_fetch_streams_the_file_from_the_offset_on(daemon: RpcThread, written: Path, offset: int) -> None:
    with connect(daemon) as sock:
        sock.sendall(frame(json.dumps({"fn": "fetchTrace", "capture_id": "c1", "offset": offset}).encode()))
        reply, *chunks, last = frames(receive(sock))
    facts = json.loads(reply)
    assert (facts["name"], facts["size_bytes"], facts["offset"]) == ("t.json", (12 << 20) + 3, offset)
    assert last == b""
    assert max(map(len, chunks), default=0) <= facts["chunk_bytes"]
    assert b"".join(chunks) == written.read_bytes()[offset:]
    eventually(lambda: descriptors_of(written) == 0)


def test_an_offset_beyond_the_file_is_refused(daemon: RpcThread, written: Path) -> None:
    reply = ask(daemon, frame(b'{"fn":"fetchTrace","capture_id":"c1","offset":99999999}'))
    assert reply["code"] == "bad_request"
    eventually(lambda: descriptors_of(written) == 0)


def test_a_file_that_became_shorter_has_no_closing_frame(daemon: RpcThread, fakes: FakeServices, written: Path) -> None:
    async def open_and_truncate(capture_id: str, caller: Caller) -> WrittenTrace:
        trace = await real(capture_id, caller)
        os.truncate(written, 6 << 20)
        return trace

    real = fakes.traces.open_written
    fakes.traces.open_written = open_and_truncate  # type: ignore[method-assign] # the file changes after it was opened
    with connect(daemon) as sock:
        sock.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
        _, *chunks = frames(receive(sock))
    assert sum(map(len, chunks)) == 6 << 20
    assert chunks[-1] != b""


def test_a_client_that_aborts_a_fetch_frees_the_file(daemon: RpcThread, written: Path) -> None:
    with connect(daemon) as sock:
        sock.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
        sock.recv(1000)
        assert descriptors_of(written) == 1
    eventually(lambda: descriptors_of(written) == 0 and held(daemon) == 0)


def test_a_slow_fetcher_delays_no_other_and_is_ended(
    fakes: FakeServices, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConnectionTable, "SEND_TIMEOUT_S", 0.3)
    with running_server(fakes) as daemon, contextlib.ExitStack() as stack:
        for _ in range(6):  # more than there are threads
            slow = stack.enter_context(connect(daemon))
            slow.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
        with connect(daemon) as quick:
            quick.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
            assert len(receive(quick)) > 12 << 20
        assert held(daemon) == 6
        eventually(lambda: held(daemon) == 0 and descriptors_of(written) == 0)


def test_only_so_many_fetches_run_at_once(fakes: FakeServices, written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectionTable, "MAX_FETCHES", 1)
    with running_server(fakes) as daemon:
        with connect(daemon) as slow:
            slow.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
            slow.recv(1)
            assert ask(daemon, frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))["code"] == "busy"
            assert descriptors_of(written) == 1
        eventually(lambda: held(daemon) == 0)
        with connect(daemon) as next_one:
            next_one.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
            assert len(receive(next_one)) > 12 << 20


def test_what_other_machines_may_do_is_said(fakes: FakeServices) -> None:
    with running_server(fakes, rpc_bind_address="::") as daemon:
        assert "only status and version" in daemon.server.notices[0]
    with running_server(fakes, rpc_bind_address="::", rpc_allow_unauthenticated=True) as daemon:
        assert "may trace any process" in daemon.server.notices[0]
    with running_server(fakes) as daemon:
        assert daemon.server.notices == []


def test_stopping_ends_waits_and_fetches(fakes: FakeServices, written: Path) -> None:
    fakes.traces.publish(capture())
    with contextlib.ExitStack() as stack:
        with running_server(fakes) as daemon:
            for request in (
                b'{"fn":"fetchTrace","capture_id":"c1"}',
                b'{"fn":"waitTrace","request_id":"r1","seen_version":0,"timeout_s":60}',
            ):
                stack.enter_context(connect(daemon)).sendall(frame(request))
            eventually(lambda: fakes.traces.waiting == 1 and len(daemon.server.connections.sending) == 1)
            assert descriptors_of(written) == 1
        assert fakes.traces.waiting == 0
        assert descriptors_of(written) == 0


def test_a_client_that_leaves_while_its_file_is_opened_leaves_no_descriptor(
    daemon: RpcThread, fakes: FakeServices, written: Path
) -> None:
    async def open_slowly(capture_id: str, caller: Caller) -> WrittenTrace:
        entered.set()
        await asyncio.to_thread(go_on.wait, 10)
        trace = await real(capture_id, caller)
        opened.set()
        return trace

    entered, go_on, opened = threading.Event(), threading.Event(), threading.Event()
    real = fakes.traces.open_written
    fakes.traces.open_written = open_slowly  # type: ignore[method-assign] # it opens when the test lets it
    with connect(daemon) as sock:
        sock.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
        assert entered.wait(10)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually(lambda: held(daemon) == 0)
    go_on.set()
    assert opened.wait(10)
    eventually(lambda: descriptors_of(written) == 0)


# --- abuse -----------------------------------------------------------------------------------------------------------


ABUSE = {
    "nothing": b"",
    "length zero": LENGTH.pack(0),
    "length negative": LENGTH.pack(-1),
    "length minimal": LENGTH.pack(-(2**31)),
    "length 2e9": LENGTH.pack(2_000_000_000),
    "one byte": b"\x10",
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("160301020001"),
    "not json": frame(b"hello"),
    "not utf-8": frame(b"\xff\xfe\xfd\xfc"),
    "deep": frame(b"[" * 100_000),
    "body cut": LENGTH.pack(1000) + b'{"fn":',
    "two requests": frame(STATUS) + frame(STATUS),
}


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("name", ABUSE)
def test_whatever_comes_and_however_it_leaves_the_next_one_is_served(daemon: RpcThread, name: str, reset: bool) -> None:
    with connect(daemon) as sock:
        sock.sendall(ABUSE[name])
        assert ask(daemon, frame(STATUS)) == {"status": 1}
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert ask(daemon, frame(STATUS)) == {"status": 1}
    eventually(lambda: held(daemon) == 0)
    assert daemon.server.methods.internal_errors == 0


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(st.binary(max_size=40) | st.binary(min_size=1, max_size=40).map(frame), max_size=4),
    reset=st.booleans(),
)
def test_any_bytes_are_answered_or_closed(daemon: RpcThread, pieces: list[bytes], reset: bool) -> None:
    # What comes after an answered request may find the connection closed.
    with connect(daemon) as sock, contextlib.suppress(OSError):
        for piece in pieces:
            sock.sendall(piece)
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            sock.shutdown(socket.SHUT_WR)
            receive(sock)
    assert ask(daemon, frame(STATUS)) == {"status": 1}
    assert daemon.server.methods.internal_errors == 0


def test_no_request_blocks_the_socket_thread(fakes: FakeServices, written: Path) -> None:
    """The loop runs here under a guard that raises when anything on it blocks."""

    async def exchange(port: int, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(request))
        answer = await reader.read(-1)
        writer.close()
        return answer

    async def story() -> None:
        server = RpcServer(
            asyncio.get_running_loop(), fakes.services, Settings(FLAGS, {"port": 0, "rpc_unix_socket": "none"})
        )
        server.start()
        with blockbuster_ctx():
            for request in (
                STATUS,
                b'{"fn":"setKinetOnDemandRequest","config":""}',
                b'{"fn":"listProcesses"}',
                b'{"fn":"fetchTrace","capture_id":"c1"}',
                b"junk",
            ):
                assert await exchange(server.port, request)
        await server.stop()
        assert server.methods.internal_errors == 0

    asyncio.run(story())


def test_many_clients_at_once_are_all_served(daemon: RpcThread) -> None:
    failures: list[Exception] = []

    def client() -> None:
        try:
            for _ in range(20):
                assert ask(daemon, frame(STATUS)) == {"status": 1}
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=client) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert daemon.server.connections.requests == 320
