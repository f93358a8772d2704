"""Connections on which nothing comes back, with real sockets at the other end."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.exporters.delivery.payload import Delivered, Payload, RetryLater
from dynolog.exporters.delivery.stream_transport import StreamTransport, tcp, unix_stream
from dynolog.model.errors import FlagError
from fakes.receivers import StreamReceiver, unused_port


def payload(text: str) -> Payload:
    return Payload(body=text.encode(), records=1)


@pytest.fixture
def receiver() -> Iterator[StreamReceiver]:
    with StreamReceiver.tcp() as receiver:
        yield receiver


@pytest.fixture
def transport(receiver: StreamReceiver) -> Iterator[StreamTransport]:
    transport = StreamTransport(tcp("127.0.0.1", receiver.port))
    yield transport
    transport.close()


def test_payloads_arrive_in_order_on_one_connection(receiver: StreamReceiver, transport: StreamTransport) -> None:
    for number in range(50):
        assert transport.send(payload(f"<{number}>")) == Delivered()
    receiver.wait_for(b"<49>")
    assert receiver.received == ["".join(f"<{number}>" for number in range(50)).encode()]


def test_a_relay_that_is_not_there_is_tried_later() -> None:
    verdict = StreamTransport(tcp("127.0.0.1", unused_port())).send(payload("x"))
    assert verdict == RetryLater("Connection refused")


@pytest.mark.parametrize("how", ["hang_up", "reset"])
def test_a_connection_that_was_closed_meanwhile_loses_nothing(
    receiver: StreamReceiver, transport: StreamTransport, how: str
) -> None:
    """The kernel would take one more payload for a connection that the other side has closed."""
    assert transport.send(payload("first")) == Delivered()
    receiver.wait_for(b"first")
    getattr(receiver, how)()
    wait_for_end(transport)
    assert transport.send(payload("second")) == Delivered()
    receiver.wait_for(b"second")
    assert receiver.received == [b"first", b"second"]


def wait_for_end(transport: StreamTransport) -> None:
    """Until this side knows of it."""
    connection = transport._connection
    assert connection is not None
    connection.settimeout(10)
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1, socket.MSG_PEEK) == b""


def test_what_the_other_side_says_is_no_end(receiver: StreamReceiver, transport: StreamTransport) -> None:
    assert transport.send(payload("first")) == Delivered()
    receiver.wait_for(b"first")
    connection, mine = receiver._connection, transport._connection
    assert connection is not None
    assert mine is not None
    connection.sendall(b"hello")
    mine.settimeout(10)
    assert mine.recv(1, socket.MSG_PEEK) == b"h"
    assert transport.send(payload("second")) == Delivered()
    receiver.wait_for(b"second")
    assert receiver.received == [b"firstsecond"]


def test_what_a_full_connection_does_not_take_in_time_is_sent_again(receiver: StreamReceiver) -> None:
    """A relay that accepts and then reads nothing: what its kernel has not acknowledged was not delivered."""
    transport = StreamTransport(tcp("127.0.0.1", receiver.port), timeout_s=0.3)
    assert transport.send(payload("first")) == Delivered()
    receiver.gate.clear()
    big = payload("x" * 16_000_000)
    verdict = transport.send(big)
    assert isinstance(verdict, RetryLater)
    assert transport._connection is None
    receiver.gate.set()
    transport.timeout_s = 10
    assert transport.send(big) == Delivered()
    receiver.wait_until(lambda: receiver.received[-1] == big.body)
    transport.close()


def test_unacknowledged_bytes_are_not_delivered() -> None:
    """All of it fits into the buffer of this side, and none of it has arrived."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def connect(timeout_s: float) -> socket.socket:
            made = socket.create_connection(listening.getsockname(), timeout_s)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            return made

        transport = StreamTransport(connect, timeout_s=0.3)
        assert transport.send(payload("x" * 200_000)) == RetryLater("not acknowledged within 0.3 s")


def test_closing_from_another_thread_ends_a_send(receiver: StreamReceiver) -> None:
    transport = StreamTransport(tcp("127.0.0.1", receiver.port), timeout_s=60)
    assert transport.send(payload("first")) == Delivered()
    receiver.gate.clear()
    verdicts = []
    sending = threading.Thread(target=lambda: verdicts.append(transport.send(payload("x" * 16_000_000))))
    sending.start()
    sending.join(0.2)
    assert sending.is_alive()
    transport.close()
    sending.join(5)
    assert not sending.is_alive()
    assert isinstance(verdicts[0], RetryLater)
    receiver.gate.set()


def test_a_unix_socket(socket_dir: str) -> None:
    path = Path(socket_dir) / "relay"
    transport = StreamTransport(unix_stream(str(path)))
    assert transport.send(payload("x")) == RetryLater("No such file or directory")
    with StreamReceiver.unix(path) as receiver:
        assert transport.send(payload("one")) == Delivered()
        receiver.wait_for(b"one")
    with StreamReceiver.unix(path) as receiver:
        assert transport.send(payload("two")) == Delivered()
        receiver.wait_for(b"two")
    transport.close()


def test_a_path_that_is_too_long_says_so() -> None:
    """At the start: no attempt could ever do better."""
    with pytest.raises(FlagError, match="at most 107 bytes"):
        unix_stream("/" + "x" * 107)
    unix_stream("/" + "x" * 106)
