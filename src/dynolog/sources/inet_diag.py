"""Who owns a TCP socket of this network namespace (sock_diag(7), proc_pid_net(5))."""

import errno
import os
import socket
import struct

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.open_files import open_links

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_NLM_F_REQUEST = 1
_NLM_F_DUMP = 0x300
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBBxI")  # inet_diag_req_v2 before its socket id: family, protocol, extensions, states
_PORTS = struct.Struct("!HH")
_NO_COOKIE = b"\xff" * 8
_TAIL = struct.Struct("=IIIII")  # inet_diag_msg after the id: expires, rqueue, wqueue, uid, inode
_MESSAGE_BYTES = 72

ESTABLISHED, _SYN_SENT, _SYN_RECEIVED, _FIN_WAIT_1, _FIN_WAIT_2, _TIME_WAIT, _CLOSE, _CLOSE_WAIT = range(1, 9)
LISTEN = 10
# A connected socket that a process may still hold; in any other state the port may be somebody else's by now.
_CONNECTED = (ESTABLISHED, _FIN_WAIT_1, _FIN_WAIT_2, _CLOSE_WAIT)


class TcpSocket(msgspec.Struct, frozen=True):
    """One TCP socket. `inode` 0 means that no process holds it any more; its `uid` then says nothing (the kernel shows 0)."""

    state: int
    local_port: int
    remote_port: int
    uid: int
    inode: int


def owner_of(local: tuple[str, int], remote: tuple[str, int]) -> int | None:
    """The uid that holds the connected socket `local` → `remote`, or None when no process of this namespace does.

    One netlink message and its answer, whatever the number of sockets. Raises SourceUnavailable when the kernel has no
    sock_diag for TCP.
    """
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    identity = (
        _PORTS.pack(local[1], remote[1])
        + socket.inet_pton(family, local[0]).ljust(16, b"\0")
        + socket.inet_pton(family, remote[0]).ljust(16, b"\0")
        + b"\0\0\0\0"
        + _NO_COOKIE
    )
    for found in _ask(family, _NLM_F_REQUEST, 0xFFFFFFFF, identity):
        if (found.local_port, found.remote_port) == (local[1], remote[1]):
            return held_by(found)
    return None


def held_by(found: TcpSocket) -> int | None:
    """The uid of a connected socket that a process holds; None for an orphan, which the kernel shows as root's."""
    return found.uid if found.inode and found.state in _CONNECTED else None


def listener(port: int) -> TcpSocket | None:
    """The socket that listens on `port`, or None. Raises SourceUnavailable."""
    for family in (socket.AF_INET, socket.AF_INET6):
        for found in _ask(family, _NLM_F_REQUEST | _NLM_F_DUMP, 1 << LISTEN, bytes(48)):
            if found.local_port == port and found.state == LISTEN:
                return found
    return None


def _ask(family: int, flags: int, states: int, identity: bytes) -> list[TcpSocket]:
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, states) + identity
    message = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, flags, 1, 0) + body
    found: list[TcpSocket] = []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as netlink:
            # The kernel answers one question inside send(2), so nothing waits, which the socket thread relies on.
            netlink.settimeout(1.0 if flags & _NLM_F_DUMP else 0.0)
            netlink.send(message)
            while not parse(netlink.recv(1 << 16), found) and flags & _NLM_F_DUMP:
                pass
    except OSError as error:
        if error.errno == errno.ENOENT:
            return []
        raise SourceUnavailable("sock_diag", error.strerror or str(error)) from error
    return found


def parse(data: bytes, found: list[TcpSocket]) -> bool:
    """Add the sockets of one netlink datagram to `found`; True when it was the last. Raises OSError for an error answer."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size:
            return True
        body = data[offset + _HEADER.size : offset + length]
        if kind == _NLMSG_DONE:
            return True
        if kind == _NLMSG_ERROR and len(body) >= 4:
            code = -struct.unpack_from("=i", body)[0]
            raise OSError(code, os.strerror(code))
        if kind == _SOCK_DIAG_BY_FAMILY and len(body) >= _MESSAGE_BYTES:
            local_port, remote_port = _PORTS.unpack_from(body, 4)
            _, _, _, uid, inode = _TAIL.unpack_from(body, 52)
            found.append(TcpSocket(body[1], local_port, remote_port, uid, inode))
        offset += (length + 3) & ~3
    return False


def owner_from_proc_net(local: tuple[str, int], remote: tuple[str, int], directory: str = "/proc/net") -> int | None:
    """What `owner_of` gives, from /proc/net/tcp and tcp6, which list every socket: slow on a busy machine."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"{directory}/{name}", "rb") as file:
                found = find_line(file.read(), local, remote)
        except OSError:
            continue
        if found is not None:
            return held_by(found)
    return None


def find_line(table: bytes, local: tuple[str, int], remote: tuple[str, int]) -> TcpSocket | None:
    """The line of a /proc/net/tcp table for this connection; an IPv4 address is also found in its IPv6-mapped form."""
    wanted = [
        f"{_kernel_hex(local[0], mapped)}:{local[1]:04X} {_kernel_hex(remote[0], mapped)}:{remote[1]:04X} ".encode()
        for mapped in (False, True)
    ]
    for line in table.splitlines():
        if wanted[0] in line or wanted[1] in line:
            try:
                columns = line.split()
                return TcpSocket(int(columns[3], 16), local[1], remote[1], int(columns[7]), int(columns[9]))
            except (ValueError, IndexError):
                return None
    return None


def _kernel_hex(address: str, mapped: bool) -> str:
    """An address as /proc/net/tcp shows it: 32-bit words in the machine's byte order."""
    if ":" in address:
        packed = socket.inet_pton(socket.AF_INET6, address)
    else:
        packed = socket.inet_aton(address)
        if mapped:
            packed = bytes(10) + b"\xff\xff" + packed
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def process_of(inode: int) -> tuple[int, str] | None:
    """Pid and name of a process that holds this socket, or None. Looks at every process: for error messages only."""
    wanted = f"socket:[{inode}]"
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        if wanted in open_links(f"/proc/{pid}/fd"):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                    return int(pid), file.read().strip()
            except OSError:
                continue
    return None
