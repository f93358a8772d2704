"""The sockets that the RPC listens on, and what is said when one cannot be had."""

import contextlib
import errno
import os
import socket
import stat

from dynolog.model.errors import DynologError, SourceUnavailable
from dynolog.sources import inet_diag
from dynolog.sources.host_files import HostFiles

BACKLOG = 4096
MAX_UNIX_PATH_BYTES = 107
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class CannotListen(DynologError):  # noqa: N818 - it is a sentence, said once
    """An address that the daemon was told to listen on and cannot."""


def tcp_listeners(addresses: tuple[str, ...], port: int) -> list[socket.socket]:
    """Non-blocking listening sockets, all on one port, which the kernel chooses when `port` is 0.

    An IPv6 address is left out where IPv6 is off, as long as one other address works; `::` becomes 0.0.0.0 there. Raises CannotListen.
    """
    if not addresses:
        raise CannotListen("--rpc_bind_address names no address: give 127.0.0.1, or :: for every address")
    for attempt in range(8 if port == 0 else 1):
        try:
            return _bind_all(addresses, port)
        except CannotListen:
            # With port 0, what the kernel chose for the first address may be taken on the second.
            if port or attempt == 7:
                raise
    raise AssertionError


def _bind_all(addresses: tuple[str, ...], port: int) -> list[socket.socket]:
    listeners: list[socket.socket] = []
    skipped: OSError | None = None
    try:
        for address in _expanded(addresses):
            try:
                listener = _bind(address, port, only_ipv6="0.0.0.0" in addresses)  # noqa: S104 - only when asked for
            except OSError as error:
                if ":" not in address or error.errno not in _NO_IPV6:
                    raise _cannot_listen(address, port, error) from error
                skipped = error
                if address == "::" and "0.0.0.0" not in addresses:  # noqa: S104
                    listeners.append(_every_ipv4_address(port))
                continue
            listeners.append(listener)
            port = listener.getsockname()[1]
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    if not listeners:
        reason = skipped.strerror if skipped else "nothing to listen on"
        raise CannotListen(f"cannot listen on {', '.join(addresses)}: {reason}: name another --rpc_bind_address")
    return listeners


def _expanded(addresses: tuple[str, ...]) -> list[str]:
    """`localhost` is both loopback addresses, and `*` every address: nothing is asked of a name server at start."""
    names = {"localhost": ("::1", "127.0.0.1"), "*": ("::",)}
    return list(dict.fromkeys(one for address in addresses for one in names.get(address, (address.strip("[]"),))))


def _every_ipv4_address(port: int) -> socket.socket:
    try:
        return _bind("0.0.0.0", port, only_ipv6=False)  # noqa: S104 - `::` asked for it
    except OSError as error:
        raise _cannot_listen("0.0.0.0", port, error) from error  # noqa: S104


def _bind(address: str, port: int, only_ipv6: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        # A restart must not wait for the connections of the daemon before (TIME_WAIT).
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(only_ipv6 or address != "::"))
        host, _, scope = address.partition("%")
        where = (host, port, 0, socket.if_nametoindex(scope) if scope else 0) if ":" in address else (host, port)
        listener.bind(where)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _cannot_listen(address: str, port: int, error: OSError) -> CannotListen:
    match error.errno:
        case errno.EADDRINUSE:
            return CannotListen(
                f"port {port} on {address} is taken{_by_whom(port)}: stop that, or choose another with --port"
            )
        case errno.EACCES | errno.EPERM:
            return CannotListen(f"no permission to listen on {address} port {port}: choose a --port above 1023")
        case errno.EADDRNOTAVAIL:
            return CannotListen(f"{address} is not an address of this machine: correct --rpc_bind_address")
        case _:
            reason = error.strerror or str(error)
            return CannotListen(f"cannot listen on {address} port {port}: {reason}: correct --rpc_bind_address")


def _by_whom(port: int) -> str:
    try:
        holder = inet_diag.listener(port)
    except SourceUnavailable:
        return ""
    if holder is None:
        return ""
    process = inet_diag.process_of(holder.inode)
    return f" by {process[1]} (pid {process[0]})" if process else f" by a process of uid {holder.uid}"


def off_ipv6(addresses: tuple[str, ...], host: HostFiles | None = None) -> str:
    """A sentence when IPv6 was switched off after some of these (as RpcServer.addresses has them) were listened on, else ""."""
    lost = [address for address in addresses if address.startswith("[")]
    if not lost:
        return ""
    try:
        if (host or HostFiles("/")).read("proc/net/if_inet6").strip():
            return ""
    except OSError:
        return ""
    return (
        f"IPv6 is off here now: nobody reaches {', '.join(lost)} by it, IPv4 goes on: "
        "sysctl net.ipv6.conf.all.disable_ipv6=0 switches it on"
    )


class UnixListener:
    """The unix socket: everybody of this machine may connect, rights go by uid. Raises CannotListen.

    `left_behind_ns` is when a daemon made the socket that was found here without anybody listening on it (Unix ns), 0 when there was none:
    one that is stopped removes it, so that one was killed, or crashed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.left_behind_ns = 0
        if len(os.fsencode(path)) > MAX_UNIX_PATH_BYTES:
            raise CannotListen(f"unix socket {path}: the path is longer than {MAX_UNIX_PATH_BYTES} bytes")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            directory = os.path.dirname(path)
            if directory and not os.path.isdir(directory):
                os.mkdir(directory, 0o755)
            self._remove_stale()
            self.sock.bind(path)
            os.chmod(path, 0o666)  # noqa: S103 - rights go by SO_PEERCRED
            self.sock.listen(BACKLOG)
            self._identity = _identity(path)
        except OSError as error:
            self.sock.close()
            raise CannotListen(f"unix socket {path}: {error.strerror}: name another --rpc_unix_socket") from error
        except CannotListen:
            self.sock.close()
            raise

    def _remove_stale(self) -> None:
        try:
            facts = os.lstat(self.path)
            if not stat.S_ISSOCK(facts.st_mode):
                raise CannotListen(f"unix socket {self.path}: there is another file of that name")
        except FileNotFoundError:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as probe:
            try:
                probe.connect(self.path)
            except ConnectionRefusedError:
                # Nobody listens: its daemon died without removing it.
                os.unlink(self.path)
                self.left_behind_ns = facts.st_mtime_ns
                return
            except BlockingIOError:
                pass
        raise CannotListen(f"unix socket {self.path}: another daemon answers on it")

    def close(self) -> None:
        """Stop listening, and remove the file unless another daemon has replaced it."""
        self.sock.close()
        with contextlib.suppress(OSError):
            if _identity(self.path) == self._identity:
                os.unlink(self.path)


def _identity(path: str) -> tuple[int, int]:
    facts = os.lstat(path)
    return facts.st_dev, facts.st_ino
