"""All endpoints of the IPC: the abstract name, the socket file, and those inside other network namespaces."""

import asyncio
import contextlib
import errno
import os
import socket
from collections import deque

from dynolog.collectors.spec import Notices
from dynolog.ipc import address as addresses
from dynolog.ipc.counters import IpcCounters
from dynolog.ipc.endpoint import Endpoint, bound_socket
from dynolog.ipc.handler import RequestHandler
from dynolog.ipc.namespace_watch import NamespaceWatch
from dynolog.model.errors import DynologError
from dynolog.model.status import IpcStatus

IPC_NAME = "dynolog"
# Datagrams that wait for the daemon, of all trainers together, before a sender is told to come back (10 ms later, libkineto).
_FEW_WAITING = 64
_FIRST_PROCESS = "/proc/1/stat"
_QUEUE_SYSCTL = "/proc/sys/net/unix/max_dgram_qlen"


class IpcListener:
    """Listens for trainers and calls `handler`; everything but the namespace scan is on the thread of `loop`.

    `socket_dir` "" means no socket file. With `namespaces`, network namespaces that hold trainers are joined every
    `scan_interval_s` seconds. `name` is the IPC name, another one beside a second daemon; the socket file may keep
    the one that trainers look for (`file_name`).
    """

    def __init__(
        self,
        handler: RequestHandler,
        loop: asyncio.AbstractEventLoop,
        notices: Notices,
        *,
        socket_dir: str = "",
        namespaces: bool = False,
        name: str = IPC_NAME,
        file_name: str = "",
        scan_interval_s: float = 10.0,
    ) -> None:
        self.counters = IpcCounters()
        self._handler = handler
        self._loop = loop
        self._notices = notices
        self._socket_dir = socket_dir
        self._name = name
        self._file_name = file_name or name
        self._endpoints: list[Endpoint] = []
        self._joined: dict[int, Endpoint] = {}
        self._arrived: deque[tuple[int, socket.socket]] = deque()
        self._file: tuple[bytes, tuple[int, int]] | None = None
        self._said: dict[str, str] = {}
        self._watch = NamespaceWatch(self, self, name, scan_interval_s) if namespaces else None

    def start(self) -> None:
        """Bind and serve. Raises DynologError, with who holds it, when a name is taken or cannot be made; nothing is left open."""
        try:
            self._serve(self._bind(addresses.abstract(self._name)))
            if self._socket_dir:
                self._serve(self._bind_file())
        except BaseException:
            self.close()
            raise
        self._say_when_the_queue_is_short()
        self._say_when_processes_are_hidden()
        if self._watch:
            self._watch.start()

    def close(self) -> None:
        """Stop serving, leave every namespace, remove the socket file if it is still ours."""
        if self._watch:
            self._watch.close()
        while self._arrived:  # bound, and not yet served
            self._arrived.popleft()[1].close()
        for endpoint in (*self._endpoints, *self._joined.values()):
            endpoint.close()
        self._endpoints.clear()
        self._joined.clear()
        self._remove_file()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it listens now: `@dynolog`, the path, and `@dynolog in net:[4026532281]` for each namespace joined."""
        joined = (f"{addresses.display(end.address)} in net:[{inode}]" for inode, end in sorted(self._joined.items()))
        return (*(addresses.display(endpoint.address) for endpoint in self._endpoints), *joined)

    def status(self, trainers: int = 0) -> IpcStatus:
        """For `getStatus`; how many trainers there are is known elsewhere."""
        counters = self.counters
        return IpcStatus(
            enabled=True,
            addresses=self.addresses,
            requests=counters.requests,
            replies=counters.replies,
            dropped_replies=counters.dropped_replies + counters.unanswerable,
            malformed=counters.malformed,
            trainers=trainers,
            notices=tuple(self._said.values()),
        )

    def say(self, key: str, sentence: str) -> None:
        """Notices of the IPC pass through here, so that the status has them as well."""
        self._said[key] = sentence
        self._notices.say(key, sentence)

    def namespace_joined(self, inode: int, sock: socket.socket) -> None:
        """Serve a socket that was bound inside another network namespace. From any thread."""
        self._arrived.append((inode, sock))
        self._loop.call_soon_threadsafe(self._add_joined)

    def namespace_left(self, inode: int) -> None:
        """The last process of a namespace has gone. From any thread."""
        self._loop.call_soon_threadsafe(self._remove_joined, inode)

    def _add_joined(self) -> None:
        while self._arrived:
            inode, sock = self._arrived.popleft()
            self._remove_joined(inode)
            endpoint = Endpoint(
                sock, self._handler, self._loop, counters=self.counters, notices=self, net_namespace=inode
            )
            self._joined[inode] = endpoint
            endpoint.start()

    def _remove_joined(self, inode: int) -> None:
        if endpoint := self._joined.pop(inode, None):
            endpoint.close()

    def _serve(self, sock: socket.socket) -> None:
        endpoint = Endpoint(sock, self._handler, self._loop, counters=self.counters, notices=self)
        self._endpoints.append(endpoint)
        endpoint.start()

    def _bind(self, address: bytes) -> socket.socket:
        shown = addresses.display(address)
        try:
            return bound_socket(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                holder = addresses.describe_holder(address)
                raise DynologError(
                    f"the IPC name {shown} is held by {holder}: stop it, or run without --enable_ipc_monitor"
                ) from error
            raise DynologError(f"the IPC cannot listen on {shown}: {error.strerror or error}") from error

    def _bind_file(self) -> socket.socket:
        path = addresses.filesystem(self._socket_dir, self._file_name)
        if notice := addresses.prepare_directory(self._socket_dir):
            self.say("ipc_socket_dir", notice)
        addresses.remove_stale(path)
        sock = self._bind(path)
        try:
            self._file = (path, addresses.open_to_everybody(path))
        except OSError as error:
            sock.close()
            raise DynologError(
                f"the IPC socket {os.fsdecode(path)} cannot be opened to trainers: {error.strerror}"
            ) from error
        return sock

    def _remove_file(self) -> None:
        if self._file is None:
            return
        path, identity = self._file
        self._file = None
        with contextlib.suppress(OSError):  # gone, or another daemon's by now
            found = os.lstat(path)
            if (found.st_dev, found.st_ino) == identity:
                os.unlink(path)

    def _say_when_processes_are_hidden(self) -> None:
        # Any other user's process would do; with hidepid=1 its files cannot be opened, with 2 they are not there.
        try:
            os.close(os.open(_FIRST_PROCESS, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            self.say(
                "ipc_hidden",
                "/proc hides other users' processes (hidepid): their trainers are answered, but their command, rank, job and GPUs "
                "stay unknown: run the daemon as root, or give its user the group that gid= of /proc's mount options names",
            )

    def _say_when_the_queue_is_short(self) -> None:
        try:
            with open(_QUEUE_SYSCTL, encoding="ascii") as file:
                waiting = int(file.read())
        except (OSError, ValueError):
            return
        if waiting < _FEW_WAITING:
            self.say(
                "ipc_queue",
                f"only {waiting} messages of trainers can wait at a time, more are sent again 10 ms later: with hundreds of "
                "trainers, set net.unix.max_dgram_qlen to 512 before the daemon starts",
            )
