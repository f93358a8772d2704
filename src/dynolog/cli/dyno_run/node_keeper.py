"""The keeper: a process that starts a node's daemon, waits for the end of every task that uses it, and stops it.

It knows tasks by pidfd_open(2), so that neither SIGKILL nor a command that closes its files can leave a daemon behind or
take one away.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

from dynolog.cli.dyno_run.node_daemon import COUNTED, NodeDaemon, try_lock
from dynolog.model.errors import DynologError
from dynolog.sources.own_program import module_command, module_environment

_START_S = 15.0
_START_POLL_S = 0.02
_STOP_S = 8.0  # the daemon's own limit is 5 s with network exporters
_BUSY_POLL_MS = 50
_OK = "ok "


def start_keeper(node: NodeDaemon, first_pid: int) -> str:
    """Start a keeper that starts the daemon for `first_pid`; returns what happened once the daemon serves. Raises DynologError.

    To be called with the node's lock held.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        _in_child(node, first_pid, writer)
    os.close(writer)
    # It has forked again: the keeper is nobody's child, so that the command finds none that it did not start.
    os.waitpid(child, 0)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    if not said.startswith(_OK):
        raise DynologError(said or "the process that should start it ended")
    return said[len(_OK) :]


def _in_child(node: NodeDaemon, first_pid: int, writer: int) -> None:
    """Never returns: what comes after would run twice."""
    code = 1
    try:
        os.setsid()
        code = _run(node, first_pid, writer) if os.fork() == 0 else 0
    finally:
        os._exit(code)


def _run(node: NodeDaemon, first_pid: int, writer: int) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A job that is told to end (scancel) may go on to write a checkpoint: the keeper ends with its last task.
        signal.signal(number, signal.SIG_IGN)
    try:
        _leave_terminal(writer)
        keeper = Keeper(node)
        daemon = keeper.start(first_pid)
    except (DynologError, OSError) as error:
        _tell(writer, str(error))
        return 1
    _tell(writer, f"{_OK}started dynolog on {os.uname().nodename}, pid {daemon}, log {node.log_path}")
    os.chdir("/")  # only now: paths among the daemon's flags begin where the job was started
    keeper.serve()
    return 0


def _tell(writer: int, sentence: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the first task was killed meanwhile; there may be others
        os.write(writer, sentence.encode())
    os.close(writer)


def _leave_terminal(writer: int) -> None:
    """Close what was inherited: a pipe that srun reads would keep it waiting."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.closerange(3, writer)
    os.closerange(writer + 1, 4096)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write("dyno-run-keeper")


class Keeper:
    """Holds the daemon and the pidfds of the tasks."""

    def __init__(self, node: NodeDaemon) -> None:
        self._node = node
        self._tasks: set[int] = set()
        self._poll = select.poll()
        self._daemon: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(node.keeper_path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind(node.keeper_path)
        self._inode = os.stat(node.keeper_path).st_ino
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._poll.register(self._listener, select.POLLIN)

    def start(self, first_pid: int) -> int:
        """Start the daemon for the first task, and wait until it serves; returns its pid. Raises DynologError and OSError."""
        self._add(first_pid)
        node = self._node
        command = [*module_command("dynolog.daemon.main"), "--enable_ipc_monitor"]
        command.append(f"--rpc_unix_socket={node.directory}/rpc.sock")
        if node.socket_directory:
            command.append(f"--ipc_socket_dir={node.socket_directory}")
        # A service manager that started the job waits to hear of the job, not of this daemon.
        env = {name: value for name, value in module_environment().items() if name != "NOTIFY_SOCKET"}
        with open(node.log_path, "wb") as log:
            self._daemon = subprocess.Popen(
                [*command, *node.flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env
            )
        self._poll.register(os.pidfd_open(self._daemon.pid), select.POLLIN)
        try:
            self._wait_until_served(self._daemon)
        except BaseException:
            self._end_daemon()
            raise
        return self._daemon.pid

    def _wait_until_served(self, daemon: subprocess.Popen[bytes]) -> None:
        ends_at = time.monotonic() + _START_S
        while not self._node.is_served():
            if daemon.poll() is not None:
                raise DynologError(f"dynolog ended at once: {_last_line(self._node.log_path)}")
            if time.monotonic() > ends_at:
                raise DynologError(f"dynolog was not ready within {_START_S:g} s: see {self._node.log_path}")
            time.sleep(_START_POLL_S)

    def serve(self) -> None:
        """Count tasks until there are none, or the daemon ends by itself; then stop it and remove what it left."""
        while True:
            # Without tasks somebody else may hold the lock, and be about to join.
            for fd, _ in self._poll.poll(_BUSY_POLL_MS if self._is_over() else None):
                if fd == self._listener.fileno():
                    self._accept()
                else:
                    self._poll.unregister(fd)
                    self._tasks.discard(fd)
                    os.close(fd)
            if self._is_over() and (lock := try_lock(self._node)) is not None:
                self._accept()  # whoever came before the lock was ours
                if self._is_over():
                    self._finish()
                    os.close(lock)
                    return
                os.close(lock)

    def _is_over(self) -> bool:
        return not self._tasks or not self._serves()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except BlockingIOError:
                return
            with client, contextlib.suppress(OSError):
                pid, uid, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                if uid == os.getuid() and self._serves() and self._add(pid):
                    client.sendall(COUNTED)

    def _serves(self) -> bool:
        return self._daemon is not None and self._daemon.poll() is None

    def _add(self, pid: int) -> bool:
        try:
            fd = os.pidfd_open(pid)
        except (OSError, ValueError):  # it ended meanwhile, or lives in a pid namespace that cannot be seen from here
            return False
        self._tasks.add(fd)
        self._poll.register(fd, select.POLLIN)
        return True

    def _finish(self) -> None:
        """With the lock held, so that whoever comes next finds either a daemon or nothing."""
        self._listener.close()
        code = self._end_daemon()
        try:
            if os.stat(self._node.keeper_path).st_ino != self._inode:
                return  # the daemon had ended by itself, and another keeper has taken over
        except FileNotFoundError:
            return
        if code == 0:
            shutil.rmtree(self._node.directory, ignore_errors=True)
        else:
            os.unlink(self._node.keeper_path)

    def _end_daemon(self) -> int:
        assert self._daemon
        self._daemon.terminate()
        try:
            return self._daemon.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            return self._daemon.wait()


def _last_line(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log.read()[-4096:].splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return f"see {path}"
