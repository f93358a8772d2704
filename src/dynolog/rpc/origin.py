"""Where a request comes from."""

import socket
import struct

import msgspec

from dynolog.model.trace_request import Transport

_UCRED = struct.Struct("=iII")
_MAPPED = "::ffff:"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one connection. `peer` and `own` are address and port, None on the unix socket; `uid` is known there only."""

    transport: Transport
    who: str
    peer: tuple[str, int] | None = None
    own: tuple[str, int] | None = None
    uid: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether the caller is a process of this machine."""
        return self.transport is not Transport.REMOTE


def origin_of(sock: socket.socket) -> Origin:
    """The origin of a connected socket. Raises OSError when it is not connected any more."""
    if sock.family == socket.AF_UNIX:
        pid, uid, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        return Origin(transport=Transport.UNIX, who=f"pid {pid} of uid {uid}", uid=uid)
    peer, own = _plain(sock.getpeername()), _plain(sock.getsockname())
    local = is_loopback(peer[0]) and is_loopback(own[0])
    return Origin(
        transport=Transport.LOOPBACK if local else Transport.REMOTE, who=f"{peer[0]} port {peer[1]}", peer=peer, own=own
    )


def _plain(address: tuple[str, int] | tuple[str, int, int, int]) -> tuple[str, int]:
    """Address and port; an IPv4 client of a dual-stack socket as IPv4."""
    host = address[0].partition("%")[0]
    if host.startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    return host, address[1]


def is_loopback(host: str) -> bool:
    """Whether an address never leaves this machine."""
    return host == "::1" or host.startswith("127.")
