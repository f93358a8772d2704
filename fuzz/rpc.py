"""The RPC: frames, requests and their answers on fakes, the config text of a trace request, job ids, trace-file options."""

import asyncio
import inspect
import struct
from contextlib import ExitStack

import msgspec

from dynolog.model.clock import SystemClock
from dynolog.model.errors import FlagError, RequestError
from dynolog.model.trace_request import Transport
from dynolog.profiling.job import parse_job
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.rpc.auth import Gate
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.framing import FrameReader, FrameRefused
from dynolog.rpc.methods import Methods
from dynolog.rpc.origin import Origin
from fakes.services import FakeServices, capture, trainer
from fuzz.target import Feed, Target, plain, text_of

_UNIX = Origin(transport=Transport.UNIX, who="pid 9 of uid 1000", uid=1000)


def _frames(data: bytes) -> None:
    """The pieces in which a frame arrives must not matter."""
    whole, pieces = FrameReader(), FrameReader()
    body = whole.feed(data)
    found = None
    for start in range(0, len(data), 97):
        found = pieces.feed(data[start : start + 97])
        if found is not None:
            break
    assert found == body


def _requests(_directory: str, stack: ExitStack) -> Feed:
    """Whatever comes, the answer is JSON, and nothing of it is the daemon's own failure."""
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    fakes = FakeServices()
    fakes.traces.registered = (trainer(),)
    fakes.traces.publish(capture())
    methods = Methods(fakes.services, Gate(FileThreads(loop), SystemClock(), None, open_to_all=False), SystemClock())

    def feed(body: bytes) -> None:
        if b"waitTrace" in body:
            return  # it waits, as it should
        answer = methods.answer(body, lambda: _UNIX)
        if inspect.iscoroutine(answer):
            answer = loop.run_until_complete(answer)
        fakes.traces.requests.clear()
        fakes.traces.fetches.clear()
        assert methods.internal_errors == 0, "a request made the daemon fail"
        assert isinstance(answer, bytes)
        msgspec.json.decode(answer)

    return feed


def _config(data: bytes) -> None:
    config = KinetoConfig.parse(text_of(data))
    KinetoConfig.parse(config.render("id"))


def _refused_number(data: bytes) -> None:
    parse_job(text_of(data), struct.unpack("<q", data[:8])[0] if len(data) >= 8 else 0)


TARGETS: tuple[Target, ...] = (
    plain("rpc_frames", _frames, FrameRefused),
    Target("rpc_requests", _requests, modules=(), largest=4096, share=0.5),
    plain("kineto_config", _config, RequestError),
    plain("job_id", _refused_number, RequestError, FlagError),
)
