"""Joins network namespaces that hold trainers, and leaves them, on a thread of its own."""

import errno
import socket
import threading
from typing import Protocol

from dynolog.collectors.spec import Notices
from dynolog.ipc.address import abstract, display
from dynolog.ipc.namespace_scan import NamespaceScan, namespace_inode
from dynolog.ipc.namespace_socket import bind_inside, missing_capabilities


class NamespaceSink(Protocol):
    """Takes what the watch finds; called from its thread."""

    def namespace_joined(self, inode: int, sock: socket.socket) -> None:
        """A socket that is bound in the namespace; it is the sink's to close."""
        ...

    def namespace_left(self, inode: int) -> None:
        """No process is left in the namespace."""
        ...


class NamespaceWatch:
    """Scans every `interval_s` seconds between `start` and `close`; one wake-up and one directory listing when nothing is new."""

    def __init__(
        self, sink: NamespaceSink, notices: Notices, name: str, interval_s: float, proc: str = "/proc"
    ) -> None:
        self._sink = sink
        self._notices = notices
        self._address = abstract(name)
        self._interval_s = interval_s
        self._proc = proc
        self._scan = NamespaceScan(proc, namespace_inode(proc, "self"))
        self._joined: set[int] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to scan; without the rights for it only say so."""
        with open(f"{self._proc}/self/status", "rb") as file:
            missing = missing_capabilities(file.read())
        if missing:
            self._notices.say(
                "ipc_namespaces",
                f"--ipc_namespaces: the daemon lacks {' and '.join(missing)}: run it as root (a container needs them added, and the "
                "host's pid namespace); until then trainers in other network namespaces are not seen",
            )
            return
        self._thread = threading.Thread(target=self._run, name="ipc-namespaces", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop scanning; a scan that is under way is waited for, but not for ever."""
        self._stop.set()
        if self._thread:
            self._thread.join(1.0)

    def scan_once(self) -> None:
        """One round: leave what is empty, join what has trainers. Raises OSError when /proc cannot be listed."""
        result = self._scan.update(self._joined)
        for inode in result.emptied:
            if inode in self._joined:
                self._joined.discard(inode)
                self._sink.namespace_left(inode)
        if result.found:
            # The thread that enters a namespace cannot be trusted to come back: it ends instead.
            joiner = threading.Thread(target=self._join, args=(result.found,), name="ipc-setns", daemon=True)
            joiner.start()
            joiner.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.scan_once()
            except Exception as error:  # noqa: BLE001 - the boundary of the thread: said, and tried again at the next scan
                self._notices.say("ipc_namespaces", f"--ipc_namespaces: a scan failed: {type(error).__name__}: {error}")
            self._stop.wait(self._interval_s)

    def _join(self, found: dict[int, int]) -> None:
        for inode, pid in found.items():
            try:
                sock = bind_inside(self._proc, pid, inode, self._address)
            except OSError as error:
                self._scan.pause(inode)
                self._say_why(inode, pid, error)
                continue
            self._joined.add(inode)
            self._sink.namespace_joined(inode, sock)

    def _say_why(self, inode: int, pid: int, error: OSError) -> None:
        """The key is the kind of failure, so that a thousand namespaces with one fault are one notice."""
        where = f"the network namespace net:[{inode}] of pid {pid}"
        match error.errno:
            case errno.EADDRINUSE:
                text = f"{display(self._address)} is taken in {where}: another daemon runs there, and its trainers are left to it"
            case errno.EPERM | errno.EACCES:
                text = f"{where} may not be entered: give the daemon CAP_SYS_ADMIN in the initial user namespace"
            case errno.EMFILE | errno.ENFILE:
                text = f"{where} cannot be joined, too many open files: raise LimitNOFILE= of the service"
            case _:
                if isinstance(error, ProcessLookupError | FileNotFoundError):
                    return  # it has ended meanwhile
                text = f"{where} cannot be joined: {error.strerror or error}"
        self._notices.say(f"ipc_namespaces_{error.errno}", f"--ipc_namespaces: {text}")
