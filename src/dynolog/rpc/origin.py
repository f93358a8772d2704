"""Where a request comes from."""

import socket
import struct
from typing import TYPE_CHECKING

import msgspec

from dynolog.model.trace_request import Transport
from dynolog.rpc.certificate import CertificateNames

if TYPE_CHECKING:
    from dynolog.rpc.tls_socket import TlsSocket

# Of asm-generic/socket.h; the socket module does not name it. getsockopt of Python takes no more bytes.
_SO_PEERGROUPS, _MAX_GROUPS_BYTES = 59, 1024
_UCRED = struct.Struct("=iII")
_MAPPED = "::ffff:"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one connection. `peer` and `own` are address and port, None on the unix socket; `uid` and `gids` are known there only.

    `certificate` is what a client of TLS showed and was signed as it must be.
    """

    transport: Transport
    who: str
    peer: tuple[str, int] | None = None
    own: tuple[str, int] | None = None
    uid: int | None = None
    gids: frozenset[int] = frozenset()
    certificate: CertificateNames | None = None

    @property
    def is_local(self) -> bool:
        """Whether the caller is a process of this machine."""
        return self.transport is not Transport.REMOTE


def origin_of(sock: "socket.socket | TlsSocket", certificate: CertificateNames | None = None) -> Origin:
    """The origin of a connected socket. Raises OSError when it is not connected any more."""
    if sock.family == socket.AF_UNIX:
        assert isinstance(sock, socket.socket)
        pid, uid, gid = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        who = f"pid {pid} of uid {uid}"
        return Origin(transport=Transport.UNIX, who=who, uid=uid, gids=frozenset({gid, *_groups_of(sock)}))
    peer, own = _plain(sock.getpeername()), _plain(sock.getsockname())
    local = is_loopback(peer[0]) and is_loopback(own[0])
    return Origin(
        transport=Transport.LOOPBACK if local else Transport.REMOTE,
        who=f"{peer[0]} port {peer[1]}",
        peer=peer,
        own=own,
        certificate=certificate,
    )


def _groups_of(sock: socket.socket) -> tuple[int, ...]:
    """The supplementary groups that the client had when it connected; none for one with more than 256, or before Linux 4.13."""
    try:
        packed = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_GROUPS_BYTES)
    except OSError:
        return ()
    return tuple(gid for (gid,) in struct.iter_unpack("=I", packed))


def _plain(address: tuple[str, int] | tuple[str, int, int, int]) -> tuple[str, int]:
    """Address and port; an IPv4 client of a dual-stack socket as IPv4."""
    host = address[0].partition("%")[0]
    if host.startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    return host, address[1]


def is_loopback(host: str) -> bool:
    """Whether an address never leaves this machine."""
    return host == "::1" or host.startswith("127.")
