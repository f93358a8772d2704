"""What the daemon and the child process with the GPU's library say to each other: length-prefixed msgpack over a socket pair."""

import msgspec

from dynolog.model.gpu import GpuSample
from dynolog.sources.gpu_backend import GpuOptions

LENGTH_BYTES = 4
# A sample of 72 devices with 60 values each is about 100 kB.
MAX_MESSAGE_BYTES = 16 << 20


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Make the backend and open it; the first request, and the only one of its kind that a child gets."""

    options: GpuOptions


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Read every device."""


class Pause(msgspec.Struct, frozen=True, tag="pause"):
    """Let go of the profiling hardware."""


class Resume(msgspec.Struct, frozen=True, tag="resume"):
    """Take the profiling hardware again."""


class Close(msgspec.Struct, frozen=True, tag="close"):
    """Let go of everything and end; there is no reply but the end."""


Request = Open | Sample | Pause | Resume | Close


class Sampled(msgspec.Struct, frozen=True, tag="sampled"):
    """A sample, and when its reading began (CLOCK_MONOTONIC, which all processes of a machine share)."""

    sample: GpuSample
    taken_ns: int


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The answer to open (always true), pause and resume (false: this backend holds no profiling hardware)."""

    ok: bool


class Unavailable(msgspec.Struct, frozen=True, tag="unavailable"):
    """A SourceUnavailable of the backend."""

    source: str
    reason: str
    remedy: str


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """Any other error that the backend raised, in a sentence."""

    error: str


Reply = Sampled | Done | Unavailable | Raised


def framed(message: Request | Reply) -> bytes:
    """The message with its length before it. Raises msgspec.MsgspecError or OverflowError for what msgpack cannot hold."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def length_of(head: bytes) -> int:
    """The length that a frame's first bytes give."""
    return int.from_bytes(head, "little")
