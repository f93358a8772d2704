"""Who owns a TCP socket, from the kernel and from recorded tables."""

import os
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import inet_diag
from dynolog.sources.inet_diag import TcpSocket

LOCAL, REMOTE = ("127.0.0.1", 0xB9F4), ("127.0.0.1", 0x06F2)
TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:06F2 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20 1 0000000000000000 100
   1: 0100007F:06F2 0100007F:B9F4 01 00000000:00000000 00:00000000 00000000     0        0 21 1 0000000000000000 20
   2: 0100007F:B9F4 0100007F:06F2 {state} 00000000:00000000 00:00000000 00000000  {uid}        0 {inode} 1 0000 20
"""
TABLE6 = """  sl  local_address                         remote_address
   0: 0000000000000000FFFF00000100007F:B9F4 0000000000000000FFFF00000100007F:06F2 01 00:00 00:0 0  1001 0 77 1 0
"""


@pytest.fixture(params=["127.0.0.1", "::1"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connected client and the server's side of it."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        listener = socket.create_server((request.param, 0), family=family)
    except OSError as error:
        pytest.skip(f"IPv6 is off: {error}")
    with listener, socket.create_connection(listener.getsockname()[:2]) as client:
        accepted, _ = listener.accept()
        with accepted:
            yield client, accepted


def both(accepted: socket.socket) -> set[int | None]:
    peer, own = accepted.getpeername()[:2], accepted.getsockname()[:2]
    return {inet_diag.owner_of(peer, own), inet_diag.owner_from_proc_net(peer, own)}


def test_the_owner_of_a_connection_is_found_both_ways(pair: tuple[socket.socket, socket.socket]) -> None:
    client, accepted = pair
    assert both(accepted) == {os.geteuid()}
    client.shutdown(socket.SHUT_WR)
    assert both(accepted) == {os.geteuid()}


def test_a_closed_client_is_nobody_not_root(pair: tuple[socket.socket, socket.socket]) -> None:
    """The kernel shows a socket that no process holds as uid 0: that must not make its late owner root."""
    client, accepted = pair
    client.sendall(b"a request")
    client.close()
    assert both(accepted) == {None}


def test_a_connection_that_never_was_has_no_owner() -> None:
    assert inet_diag.owner_of(("127.0.0.1", 9), ("127.0.0.1", 10)) is None
    assert inet_diag.owner_from_proc_net(("127.0.0.1", 9), ("127.0.0.1", 10)) is None


def test_a_listener_on_the_client_port_is_not_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert inet_diag.owner_of(listener.getsockname()[:2], ("127.0.0.1", 10)) is None


def test_the_holder_of_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = inet_diag.listener(server.getsockname()[1])
        assert found is not None
        assert found.inode == os.fstat(server.fileno()).st_ino
        process = inet_diag.process_of(found.inode)
        assert process is not None
        assert process[0] == os.getpid()
    assert inet_diag.listener(0) is None


def line(state: int = 1, uid: int = 1000, inode: int = 55) -> bytes:
    return TABLE.format(state=f"{state:02X}", uid=uid, inode=inode).encode()


def test_the_line_of_a_table_is_found_by_both_ends() -> None:
    assert inet_diag.find_line(line(), LOCAL, REMOTE) == TcpSocket(1, LOCAL[1], REMOTE[1], 1000, 55)
    assert inet_diag.find_line(TABLE6.encode(), LOCAL, REMOTE) == TcpSocket(1, LOCAL[1], REMOTE[1], 1001, 77)
    assert inet_diag.find_line(line(), LOCAL, LOCAL) is None
    assert inet_diag.find_line(line().replace(b"1000", b"x"), LOCAL, REMOTE) is None


@pytest.mark.parametrize(
    ("state", "inode", "uid"),
    [(1, 55, 1000), (5, 55, 1000), (8, 55, 1000), (1, 0, None), (6, 0, None), (2, 55, None), (10, 55, None)],
)
def test_only_a_connected_socket_that_is_held_has_an_owner(state: int, inode: int, uid: int | None) -> None:
    found = inet_diag.find_line(line(state=state, inode=inode), LOCAL, REMOTE)
    assert found is not None
    assert inet_diag.held_by(found) == uid


def test_a_kernel_without_sock_diag_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(SourceUnavailable, match="sock_diag"):
        inet_diag.owner_of(("127.0.0.1", 1), ("127.0.0.1", 2))


@given(data=st.binary(max_size=300))
def test_any_netlink_bytes_end(data: bytes) -> None:
    found: list[TcpSocket] = []
    try:
        inet_diag.parse(data, found)
    except OSError:
        return
    assert len(found) <= 3


def test_an_error_answer_raises() -> None:
    message = struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -13)
    with pytest.raises(PermissionError):
        inet_diag.parse(message, [])
