"""A daemon that answers every function in the right form, with texts and numbers that nobody should be shown as they are."""

import collections.abc
import contextlib
import enum
import json
import random
import socketserver
import threading
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from dynolog.rpc import messages
from dynolog.rpc.framing import LENGTH, frame

# Sets the title of the terminal, clears it, ends the line, and turns the rest around.
EVIL = "\x1b]0;title\x07\x1b[2J\n\r\u202e\x9b1m"
STEERS = ("\x1b", "\x07", "\r", "\u202e", "\x9b")

REPLIES: dict[str, type] = {
    "getStatus": messages.StatusReply,
    "getVersion": messages.VersionReply,
    "setKinetOnDemandRequest": messages.TraceReply,
    "dcgmProfPause": messages.BoolReply,
    "dcgmProfResume": messages.BoolReply,
    "listProcesses": messages.ProcessesReply,
    "getTrace": messages.TraceProgressReply,
    "waitTrace": messages.TraceProgressReply,
    "fetchTrace": messages.FetchReply,
    "getHostSamples": messages.HostSamplesReply,
    "getMetrics": messages.MetricsReply,
    "listMetrics": messages.CatalogueReply,
    "getGpus": messages.GpusReply,
    "reload": messages.ReloadReply,
}


class Inventor:
    """Makes up a value of any type that a reply holds."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def reply(self, function: str) -> Any:
        """A reply to a function, as JSON holds it; "failed" for one that is not known."""
        kind = REPLIES.get(function)
        if kind is None:
            return {"status": "failed", "code": EVIL, "error": EVIL}
        reply = self.value(kind)
        if reply.get("status") == EVIL:
            reply["status"] = "ok"
        return reply

    def value(self, kind: Any) -> Any:
        """One value, at random."""
        choose = self._random.choice
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            hints = typing.get_type_hints(kind)
            fields = {field.encode_name: self.value(hints[field.name]) for field in msgspec.structs.fields(kind)}
            tag = kind.__struct_config__.tag
            return fields | ({str(kind.__struct_config__.tag_field): tag} if tag else {})
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return choose(list(kind)).value
        if kind is bool:
            return choose((True, False))
        if kind is int:
            return choose((0, 1, -1, 4242, 1_764_544_000_000_000_000, 2**62))
        if kind is float:
            return choose((0.0, 1.5, -3.0, 1e300))
        if origin in (typing.Union, types.UnionType):
            return self.value(choose([one for one in inner if one is not type(None)]))
        if origin is typing.Literal:
            return choose(inner)
        if origin in (dict, collections.abc.Mapping):
            return {self.value(inner[0]) if inner[0] is str else "7": self.value(inner[1])}
        if origin is tuple and inner[-1] is not Ellipsis:
            return [self.value(one) for one in inner]
        if origin is not None:
            return [self.value(inner[0]) for _ in range(choose((1, 1, 2, 3)))]
        return EVIL


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        header = self.rfile.read(LENGTH.size)
        if len(header) < LENGTH.size:
            return
        function = json.loads(self.rfile.read(*LENGTH.unpack(header)))["fn"]
        inventor = typing.cast("_Server", self.server).inventor
        self.wfile.write(frame(msgspec.json.encode(inventor.reply(function))))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, inventor: Inventor) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.inventor = inventor

    def handle_error(self, *_: object) -> None:
        """Clients leave when they have seen enough."""


@contextlib.contextmanager
def hostile_daemon(seed: int) -> Iterator[int]:
    """Its port."""
    with _Server(Inventor(seed)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)
