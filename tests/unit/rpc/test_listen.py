"""Listening sockets, and what is said when one cannot be had."""

import errno
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from dynolog.rpc.listen import CannotListen, UnixListener, off_ipv6, tcp_listeners
from dynolog.rpc.unix_path import default_unix_path
from dynolog.sources.host_files import HostFiles

LOOPBACK = ("::1", "127.0.0.1")


def close(listeners: list[socket.socket]) -> list[tuple[str, int]]:
    where = [listener.getsockname()[:2] for listener in listeners]
    for listener in listeners:
        listener.close()
    return where


def no_ipv6(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has IPv6 off: the socket, or only the address, cannot be had."""
    real = socket.socket

    class Without(real):  # type: ignore[misc, valid-type] # a class known at run time only
        def __init__(self, family: int = -1, *arguments: Any, **named: Any) -> None:
            if family == socket.AF_INET6 and code == errno.EAFNOSUPPORT:
                raise OSError(code, os.strerror(code))
            super().__init__(family, *arguments, **named)

        def bind(self, address: Any) -> None:
            if self.family == socket.AF_INET6:
                raise OSError(code, os.strerror(code))
            super().bind(address)

    monkeypatch.setattr(socket, "socket", Without)


def test_port_0_is_one_port_on_all_addresses() -> None:
    where = close(tcp_listeners(LOOPBACK, 0))
    assert len({port for _, port in where}) == 1
    assert where[-1][0] == "127.0.0.1"


@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_where_ipv6_is_off_ipv4_serves(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A13."""
    no_ipv6(code, monkeypatch)
    assert [host for host, _ in close(tcp_listeners(LOOPBACK, 0))] == ["127.0.0.1"]
    assert [host for host, _ in close(tcp_listeners(("::",), 0))] == ["0.0.0.0"]
    with pytest.raises(CannotListen, match="::1"):
        tcp_listeners(("::1",), 0)


def test_every_address_is_served_by_one_dual_stack_socket() -> None:
    listeners = tcp_listeners(("::",), 0)
    port = listeners[0].getsockname()[1]
    socket.create_connection(("127.0.0.1", port)).close()
    close(listeners)
    assert len(close(tcp_listeners(("::", "0.0.0.0"), 0))) in (1, 2)


def test_a_taken_port_says_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"port {port} on 127.0.0.1 is taken by .* \(pid {os.getpid()}\)"):
            tcp_listeners(("127.0.0.1",), port)


def test_a_foreign_address_is_said_to_be_foreign() -> None:
    with pytest.raises(CannotListen, match=r"192\.0\.2\.1 is not an address of this machine"):
        tcp_listeners(("192.0.2.1",), 0)


@pytest.mark.parametrize("addresses", [(), ("not-an-address",)])
def test_no_usable_address_is_an_error(addresses: tuple[str, ...]) -> None:
    with pytest.raises(CannotListen, match="--rpc_bind_address"):
        tcp_listeners(addresses, 0)


def test_everybody_may_connect_to_the_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "made" / "d.sock"
    listener = UnixListener(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    listener.close()
    assert not path.exists()


def test_a_stale_unix_socket_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    made_ns = os.lstat(path).st_mtime_ns
    listener = UnixListener(path)
    assert listener.left_behind_ns == made_ns
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    listener.close()
    # One that was closed in order leaves nothing.
    again = UnixListener(path)
    assert again.left_behind_ns == 0
    again.close()


@pytest.mark.parametrize(
    ("addresses", "table", "said"),
    [
        (("[::1]:1778", "127.0.0.1:1778"), "", "nobody reaches [::1]:1778 by it"),
        (("[::1]:1778",), "00000000000000000000000000000001 01 80 10 80       lo\n", ""),
        (("127.0.0.1:1778", "/run/dynolog/dynolog.sock"), "", ""),
        (("[::1]:1778",), None, ""),
    ],
)
def test_ipv6_that_was_switched_off_is_said(
    tmp_path: Path, addresses: tuple[str, ...], table: str | None, said: str
) -> None:
    """The sockets stay as they are then; the kernel's table of addresses is empty."""
    (tmp_path / "proc/net").mkdir(parents=True)
    if table is not None:
        (tmp_path / "proc/net/if_inet6").write_text(table)
    sentence = off_ipv6(addresses, HostFiles(str(tmp_path)))
    assert (said in sentence) if said else sentence == ""


def test_a_live_unix_socket_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    first = UnixListener(path)
    with pytest.raises(CannotListen, match="another daemon"):
        UnixListener(path)
    assert os.path.exists(path)
    first.close()


def test_a_replaced_unix_socket_is_not_removed_by_its_old_owner(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    first = UnixListener(path)
    os.unlink(path)
    second = UnixListener(path)
    first.close()
    assert os.path.exists(path)
    second.close()


def test_another_file_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    path.write_text("mine")
    with pytest.raises(CannotListen, match="another file"):
        UnixListener(str(path))
    assert path.read_text() == "mine"


@pytest.mark.parametrize("path", ["/proc/no/such/d.sock", "/tmp/" + "x" * 108])
def test_an_impossible_unix_path_is_said(path: str) -> None:
    with pytest.raises(CannotListen, match="unix socket"):
        UnixListener(path)


def test_the_default_unix_path_goes_by_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert default_unix_path() == "/run/user/1000/dynolog.sock"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_unix_path() == ""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_unix_path() == "/run/dynolog/dynolog.sock"
