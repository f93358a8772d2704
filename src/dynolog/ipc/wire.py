"""The bytes of the profiling IPC: what a trainer (libkineto) sends in a datagram, and what it is answered.

A datagram is a header (`uint64` size of the payload, `char type[32]` padded with NUL) and the payload, in native byte order:
- `req`, a poll: `int32` mask, `int32` n, `int64` job id, `int32 pids[n]`; answered by `req` and the config text,
- `ctxt`, a registration (not sent by recent PyTorch): `int32` gpu, `int32` pid, `int64` job id; answered by `ctxt` and an `int32`.
"""

import struct

import msgspec

from dynolog.model.errors import WireError

# What a poll can take, as bits of its mask.
EVENTS = 1
ACTIVITIES = 2

_HEADER = struct.Struct("=Q32s")
_REQUEST = struct.Struct("=iiq")
_CONTEXT = struct.Struct("=iiq")
_COUNT = struct.Struct("=i")

# libkineto follows at most ten ancestors; a hundred times that is no trainer.
MAX_PIDS = 1024
MAX_DATAGRAM_BYTES = _HEADER.size + _REQUEST.size + 4 * MAX_PIDS
# Far more than every known key with its longest value; below the smallest socket buffer a kernel has by default.
MAX_CONFIG_BYTES = 65536

_REQUEST_TYPE = b"req".ljust(32, b"\0")
_CONTEXT_TYPE = b"ctxt".ljust(32, b"\0")


class ConfigRequest(msgspec.Struct, frozen=True):
    """A trainer's poll: is there a config for me?

    `mask` has the bits EVENTS and ACTIVITIES for what it could start now; without ACTIVITIES it is profiling. `job_id` is its
    SLURM_JOB_ID (0: none). `pids[0]` is the process itself, then its ancestors, as numbered in its own pid namespace.
    """

    mask: int
    job_id: int
    pids: tuple[int, ...]


class ContextMessage(msgspec.Struct, frozen=True):
    """A process announces itself on a GPU (libkineto before PyTorch 2.13)."""

    gpu: int
    pid: int
    job_id: int


def parse(datagram: bytes | memoryview) -> ConfigRequest | ContextMessage:
    """One datagram. Raises WireError with the reason for anything that is not exactly one of the two messages.

    What follows the NUL in the type is ignored: nothing promises that a client clears it.
    """
    length = len(datagram)
    if length < _HEADER.size:
        raise WireError(f"a datagram of {length} bytes, where the header alone has {_HEADER.size}")
    if length > MAX_DATAGRAM_BYTES:
        raise WireError(f"a datagram of more than the {MAX_DATAGRAM_BYTES} bytes that make sense")
    size, kind = _HEADER.unpack_from(datagram)
    if size != length - _HEADER.size:
        raise WireError(f"the header promises {size} bytes of payload and {length - _HEADER.size} came")
    if kind not in (_REQUEST_TYPE, _CONTEXT_TYPE):
        kind = _cleared(kind)
    if kind == _REQUEST_TYPE:
        return _parse_request(datagram, size)
    if kind == _CONTEXT_TYPE:
        return _parse_context(datagram, size)
    raise WireError(f"unknown message type {_shown(kind)}")


def _cleared(kind: bytes) -> bytes:
    name, nul, _rest = kind.partition(b"\0")
    if not nul:
        raise WireError(f"the message type {_shown(kind)} does not end with a NUL")
    return name.ljust(32, b"\0")


def _shown(kind: bytes) -> str:
    return repr(kind.rstrip(b"\0"))[1:]


def _parse_request(datagram: bytes | memoryview, size: int) -> ConfigRequest:
    if size < _REQUEST.size:
        raise WireError(f"a request of {size} bytes, where its fixed part has {_REQUEST.size}")
    mask, count, job_id = _REQUEST.unpack_from(datagram, _HEADER.size)
    if count < 1:
        raise WireError(f"a request that counts {count} pids, where the first is the sender's own")
    if size != _REQUEST.size + 4 * count:
        raise WireError(f"a request that counts {count} pids and carries {size - _REQUEST.size} bytes of them")
    pids = struct.unpack_from(f"={count}i", datagram, _HEADER.size + _REQUEST.size)
    if pids[0] < 1:
        raise WireError(f"a request from a process that calls itself pid {pids[0]}")
    return ConfigRequest(mask, job_id, pids)


def _parse_context(datagram: bytes | memoryview, size: int) -> ContextMessage:
    if size != _CONTEXT.size:
        raise WireError(f"a registration of {size} bytes, where it has {_CONTEXT.size}")
    gpu, pid, job_id = _CONTEXT.unpack_from(datagram, _HEADER.size)
    if pid < 1:
        raise WireError(f"a registration of a process that calls itself pid {pid}")
    return ContextMessage(gpu, pid, job_id)


def reply_config(text: str) -> bytes:
    """The answer to a poll: the config, or "" for none. Raises WireError when the text is too long to be sent."""
    if not text:
        return NO_CONFIG
    payload = text.encode("utf-8", "surrogateescape")  # a path may hold bytes that are no UTF-8
    if len(payload) > MAX_CONFIG_BYTES:
        raise WireError(f"a config of {len(payload)} bytes, where at most {MAX_CONFIG_BYTES} are sent")
    return _HEADER.pack(len(payload), b"req") + payload


def reply_context(count: int) -> bytes:
    """The answer to a registration: how many processes are on that GPU for that job; -1 for a failure."""
    return _HEADER.pack(_COUNT.size, b"ctxt") + _COUNT.pack(count)


NO_CONFIG = _HEADER.pack(0, b"req")
