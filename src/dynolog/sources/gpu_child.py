"""The daemon's end of the child process with the GPU's library: starting it, asking it with a deadline, and getting rid of it.

Everything here belongs to one thread that lives as long as the child may: the kernel kills the child when the thread that started it ends.
Only `kill` may be called from elsewhere.
"""

import contextlib
import fcntl
import os
import select
import signal
import socket
import sys
import threading
import time

import msgspec

from dynolog.model.errors import DynologError
from dynolog.sources.child_output import ChildOutput
from dynolog.sources.gpu_wire import LENGTH_BYTES, MAX_MESSAGE_BYTES, Close, Reply, Request, framed, length_of
from dynolog.sources.own_program import module_command, module_environment

_MODULE = "dynolog.sources.gpu_worker"
_decode = msgspec.msgpack.Decoder(Reply).decode
_PIECE_BYTES = 1 << 18
# A killed process ends within this, or sits in a call into the kernel that cannot be interrupted.
_KILL_S = 1.0
_CLOSE_S = 0.3
# Where the child finds its end of the socket pair, above the standard streams.
_CHILD_FD = 3


class ChildFailed(DynologError):  # noqa: N818 - it is what has happened, said once
    """The child is of no use any more, and has been ended: it crashed, hung, or answered what cannot be an answer."""


class GpuChild:
    """One child process. Raises OSError when no process can be had."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._poll = select.poll()
        ours, theirs = socket.socketpair()
        out, into = os.pipe()
        try:
            # A child that prints more than the pipe holds shall lose it, not wait in the middle of a call.
            os.set_blocking(into, False)
            os.set_blocking(out, False)
            self.pid = _spawn(theirs.fileno(), into)
        except BaseException:
            ours.close()
            os.close(out)
            raise
        finally:
            theirs.close()
            os.close(into)
        ours.setblocking(False)
        self._socket = ours
        self._is_reaped = False
        self._status = -1
        self.output = ChildOutput(out, f"the {backend} process")
        self._poll.register(ours, select.POLLIN)
        self._poll.register(out, select.POLLIN)

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """The answer. Raises ChildFailed, in a sentence that names the call; then the child is gone, or `is_stuck`."""
        call = type(request).__struct_config__.tag
        if self._socket.fileno() < 0:
            raise ChildFailed("its process has ended")
        self.output.drain()
        started = time.monotonic()
        try:
            data = framed(request)
            if self._socket.send(data) != len(data):
                raise self._failed(f"takes no request ({call})")
        except BlockingIOError as error:
            raise self._failed(f"takes no request ({call})") from error
        except OSError as error:
            raise self._ended(str(call)) from error
        while (body := self._frame()) is None:
            left_s = started + deadline_s - time.monotonic()
            if left_s <= 0:
                raise self._failed(
                    f"has not returned from {call} within {deadline_s:g} s (--gpu_deadline_s) and was killed"
                )
            self._receive(str(call), left_s)
        try:
            reply: Reply = _decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise self._failed(f"gave an answer to {call} that is none ({error}) and was killed") from error
        return reply

    def close(self) -> None:
        """Ask it to end, kill it when it does not, and let go of everything."""
        with contextlib.suppress(OSError, BlockingIOError):
            self._socket.send(framed(Close()))
            self._wait(_CLOSE_S)
        self._let_go()

    def kill(self) -> None:
        """Kill it; `ask` then raises ChildFailed. From any thread."""
        with self._lock:
            if not self._is_reaped:
                os.kill(self.pid, signal.SIGKILL)

    @property
    def is_stuck(self) -> bool:
        """Whether it was killed and is still there: it sits in a call into the kernel, and only the driver can end that."""
        return self._reap() is None

    # --- its answers --------------------------------------------------------------------------------------------------

    def _frame(self) -> bytes | None:
        """A whole answer, when there is one. Raises ChildFailed for one that is too long."""
        if len(self._buffer) < LENGTH_BYTES:
            return None
        length = length_of(bytes(self._buffer[:LENGTH_BYTES]))
        if length > MAX_MESSAGE_BYTES:
            raise self._failed(f"announced an answer of {length:,} bytes and was killed")
        end = LENGTH_BYTES + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[LENGTH_BYTES:end])
        del self._buffer[:end]
        return body

    def _receive(self, call: str, timeout_s: float) -> None:
        for fd, _events in self._poll.poll(max(timeout_s, 0) * 1000 + 1):
            if fd == self.output.fd:
                if not self.output.drain():
                    self._poll.unregister(fd)
                continue
            try:
                piece = self._socket.recv(_PIECE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                raise self._ended(call)
            self._buffer += piece

    # --- its end ------------------------------------------------------------------------------------------------------

    def _ended(self, call: str) -> ChildFailed:
        """It has closed its socket: the report says how it ended."""
        status = self._wait(_KILL_S)
        self.output.drain()
        words = self.output.last_words
        self._let_go()
        return ChildFailed(f"its process ended in {call}: {_how(status)}" + (f"; it printed: {words}" if words else ""))

    def _failed(self, sentence: str) -> ChildFailed:
        self._let_go()
        return ChildFailed(f"its process {sentence}")

    def _let_go(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.kill()
        self._wait(_KILL_S)
        if self._socket.fileno() >= 0:
            self._socket.close()
            self.output.close()

    def _wait(self, timeout_s: float) -> int | None:
        """Its wait status, or None when it has not ended by then."""
        deadline = time.monotonic() + timeout_s
        pause_s = 0.001
        while (status := self._reap()) is None and time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.02)
        return status

    def _reap(self) -> int | None:
        with self._lock:
            if not self._is_reaped:
                try:
                    pid, status = os.waitpid(self.pid, os.WNOHANG)
                except ChildProcessError:  # somebody else has waited for it
                    pid, status = self.pid, -1
                if pid:
                    self._is_reaped, self._status = True, status
            return self._status if self._is_reaped else None


def _how(status: int | None) -> str:
    """A wait status in words."""
    if status is None or status < 0:
        return "how is not known"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = next((one.name for one in signal.Signals if one == number), f"signal {number}")
        return f"{name} ({signal.strsignal(number)})"
    return f"exit status {os.waitstatus_to_exitcode(status)}"


def _spawn(connection: int, output: int) -> int:
    """The pid of a new child with these two; in a session of its own, so that Ctrl-C at a terminal is not for it."""
    # Out of the way of the numbers that they get in the child.
    descriptors = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (connection, output)]
    environment = module_environment()
    if more := os.environ.get("PYTHONPATH"):  # where a backend of one's own may be
        environment["PYTHONPATH"] += os.pathsep + more
    try:
        return os.posix_spawn(
            sys.executable,
            [*module_command(_MODULE), str(_CHILD_FD), str(os.getpid())],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, descriptors[1], 1),
                (os.POSIX_SPAWN_DUP2, descriptors[1], 2),
                (os.POSIX_SPAWN_DUP2, descriptors[0], _CHILD_FD),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD),
        )
    finally:
        for fd in descriptors:
            os.close(fd)
