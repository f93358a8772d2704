"""The child process with the GPU's library: opens one backend and answers one request after another.

Started by gpu_child with the socket's descriptor and the pid of the daemon. It ends with the daemon: the kernel kills it when the thread
that started it has gone, and a closed socket ends its loop.
"""

import contextlib
import os
import signal
import socket
import sys
import time

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.gpu_backend import GpuBackend
from dynolog.sources.gpu_registry import load
from dynolog.sources.gpu_wire import (
    LENGTH_BYTES,
    Close,
    Done,
    Open,
    Pause,
    Raised,
    Reply,
    Request,
    Resume,
    Sampled,
    Unavailable,
    framed,
    length_of,
)

# Below the jobs of this machine, above what runs only when nothing else does.
_NICENESS = 5
_PR_SET_PDEATHSIG = 1
_MOST_DESCRIPTORS = 65536
# It ends in the log, in `dyno gpus` and in the status.
_LONGEST_ERROR = 500
_decode = msgspec.msgpack.Decoder(Request).decode


class Worker:
    """Answers requests with a backend."""

    def __init__(self) -> None:
        self._backend: GpuBackend | None = None

    def answer(self, request: Request) -> Reply:
        """Never raises: what a backend raises is its answer."""
        try:
            return self._do(request)
        except SourceUnavailable as error:
            return Unavailable(error.source, error.reason, error.remedy)
        except Exception as error:  # noqa: BLE001 - the boundary of this process: the daemon counts and reports it
            return Raised(f"{type(error).__name__}: {error}"[:_LONGEST_ERROR])

    def close(self) -> None:
        """Let go of the backend."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    def _do(self, request: Request) -> Reply:
        if isinstance(request, Open):
            self._backend = load(request.options)
            self._backend.open()
            return Done(ok=True)
        assert self._backend is not None, "the first request opens"
        match request:
            case Pause():
                return Done(ok=self._backend.pause_profiling())
            case Resume():
                return Done(ok=self._backend.resume_profiling())
            case _:
                taken_ns = time.monotonic_ns()
                return Sampled(self._backend.sample(), taken_ns)


def encoded(reply: Reply) -> bytes:
    """The frame of a reply; one that cannot be encoded (a number of more than 64 bits) becomes an error."""
    try:
        return framed(reply)
    except (msgspec.MsgspecError, OverflowError, TypeError, ValueError) as error:
        return framed(Raised(f"its answer cannot be encoded: {error}"))


def serve(connection: socket.socket) -> None:
    """Answer until the other side closes or says close."""
    worker = Worker()
    try:
        while (head := _exactly(connection, LENGTH_BYTES)) and (body := _exactly(connection, length_of(head))):
            request: Request = _decode(body)
            if isinstance(request, Close):
                return
            connection.sendall(encoded(worker.answer(request)))
    finally:
        worker.close()


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes; b"" when the other side has closed."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return b""
        data += part
    return bytes(data)


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends (PR_SET_PDEATHSIG of prctl(2))."""
    import ctypes  # noqa: PLC0415 - backends import it anyway, tests of this module need not

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call
        os._exit(0)


def main() -> None:
    """`gpu_worker FD PID`."""
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    _end_with(parent)
    # Whatever whoever started the daemon has left open is not for a vendor's library.
    os.closerange(descriptor + 1, _MOST_DESCRIPTORS)
    os.nice(_NICENESS)
    os.set_inheritable(descriptor, False)
    with socket.socket(fileno=descriptor) as connection, contextlib.suppress(OSError):  # the daemon has gone
        serve(connection)
    # Threads and exit handlers of a vendor's library may hang or crash: there is nothing left to be done by them.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
