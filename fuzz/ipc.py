"""The IPC: datagrams of trainers, and the rooms behind them."""

import contextlib
import struct
from contextlib import ExitStack

from dynolog.ipc.wire import ConfigRequest, parse
from dynolog.model.errors import WireError
from dynolog.model.trainer import Peer
from fakes.profiling import FakeService, facts
from fuzz.target import Feed, Target

_HEADER = struct.Struct("=Q32s")
_CONTEXT_BYTES = 16


def _trainers(_directory: str, stack: ExitStack) -> Feed:
    """Bytes as they are, and as the payload of a message with a right header; what parses goes to the registry.

    It comes from one of three processes of two users; now and then one of them ends.
    """
    room = FakeService(stack)
    for pid in (101, 102, 103):
        room.reader.processes[pid] = facts(pid)
    fed = 0

    def feed(data: bytes) -> None:
        with contextlib.suppress(WireError):
            receive(data)
        receive(_HEADER.pack(len(data), b"ctxt" if len(data) == _CONTEXT_BYTES else b"req") + data)

    def receive(datagram: bytes) -> None:
        nonlocal fed
        fed += 1
        message = parse(datagram)
        pid = 101 + fed % 3
        peer = Peer(pid if fed % 7 else 0, fed % 2, 0)
        if isinstance(message, ConfigRequest):
            room.desk.on_request(peer, room.sender(pid, fed % 5), message)
        else:
            room.desk.on_context(peer, room.sender(pid), message)
        room.clock.pass_s(0.5)
        if fed % 50 == 0:
            room.end(pid)
            room.desk.registry.sweep()
            room.settle()

    return feed


TARGETS: tuple[Target, ...] = (Target("ipc_datagrams", _trainers, (WireError,), largest=4200, share=0.5),)
