"""The host's samples, from the daemon into a trace that was fetched."""

import threading
from collections.abc import Callable

import msgspec

from dynolog.analysis.editing.host_tracks import CannotAdd, Window, add_tracks
from dynolog.model.capture import CaptureInfo
from dynolog.model.errors import DynologError, RequestError
from dynolog.model.host_samples import SampleBlock, of_process
from dynolog.profiling.trace_bytes import TraceUnreadable
from dynolog.rpc.client import NoAnswer, Target, call
from dynolog.rpc.messages import GetHostSamples, HostSamplesReply

# Each has 20,000 values; a daemon keeps 300,000.
_MOST_PAGES = 256


class Amended(msgspec.Struct, frozen=True, kw_only=True):
    """How many tracks were added to a trace, or why none."""

    tracks: int = 0
    note: str = ""


class NoSamples(DynologError):  # noqa: N818 - it is a state of the world
    """The daemon has none; the text says why."""


def samples_of(target: Target, request_id: str) -> tuple[SampleBlock, ...]:
    """All samples that the daemon has of a request's time. Raises NoSamples for a daemon without them, and what `call` raises."""
    blocks: list[SampleBlock] = []
    begin_wall_ns = 0
    for _ in range(_MOST_PAGES):
        try:
            reply = call(target, GetHostSamples(request_id=request_id, begin_wall_ns=begin_wall_ns), HostSamplesReply)
        except NoAnswer:
            raise NoSamples("the daemon is the original C++ dynolog, which samples nothing") from None
        except RequestError as error:
            if error.code != "unknown_function":
                raise
            raise NoSamples("the daemon is of an older version, which samples nothing") from None
        blocks += reply.blocks
        if reply.next_wall_ns <= begin_wall_ns:
            break
        begin_wall_ns = reply.next_wall_ns
    return tuple(blocks)


class HostTracks:
    """Adds them to traces. The samples of a request are asked for once, however many traces it made. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._found: dict[tuple[str, str], tuple[SampleBlock, ...] | DynologError] = {}

    def add_to_capture(self, target: Target, capture: CaptureInfo, path: str, output: str) -> Amended:
        """Write `path`, the trace of this capture, as `output`."""
        file = capture.file
        if file is None or file.memory_snapshot:
            return Amended()
        return self.add(
            lambda: self._samples(target, capture.request_id),
            path,
            output,
            begin_wall_ns=file.begin_wall_ns,
            duration_us=file.duration_us,
            sha256=file.sha256,
            host_pid=capture.host_pid,
        )

    def of(self, target: Target, request_id: str) -> Callable[[], tuple[SampleBlock, ...]]:
        """What asks for the samples of a request when they are needed."""
        return lambda: self._samples(target, request_id)

    def add(
        self,
        samples: Callable[[], tuple[SampleBlock, ...]],
        path: str,
        output: str,
        *,
        begin_wall_ns: int,
        duration_us: float,
        sha256: str,
        host_pid: int,
    ) -> Amended:
        """Write `path`, which this process wrote, with the samples of its time as `output`; else nothing is, and the note says why."""
        window = Window(begin_wall_ns=begin_wall_ns, end_wall_ns=begin_wall_ns + int(duration_us * 1000))
        try:
            blocks = tuple(of_process(samples(), host_pid))
            if not blocks:
                return Amended(note="the daemon has no samples of that time: it takes them when asked with --with-host")
            return Amended(tracks=add_tracks(path, blocks, window, sha256, output).tracks)
        except (CannotAdd, NoSamples) as error:
            return Amended(note=str(error))
        except TraceUnreadable as error:
            return Amended(note=error.reason)
        except DynologError as error:
            return Amended(note=f"the samples cannot be had: {error}")
        except OSError as error:
            return Amended(note=f"they cannot be written: {error.strerror or error}")

    def _samples(self, target: Target, request_id: str) -> tuple[SampleBlock, ...]:
        key = (str(target), request_id)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._found:
                try:
                    self._found[key] = samples_of(target, request_id)
                except DynologError as error:
                    self._found[key] = error
            found = self._found[key]
        if isinstance(found, DynologError):
            raise found
        return found
