"""What the IPC calls for each message; the profiling room implements it, tests use fakes."""

from typing import Protocol

import msgspec

from dynolog.ipc.wire import ConfigRequest, ContextMessage
from dynolog.model.trainer import Peer


class Sender(msgspec.Struct, frozen=True):
    """The socket that a message came from: where, and only where, its answer goes.

    `net_namespace` is the inode of the network namespace of the endpoint that it came to (0: the daemon's own).
    """

    address: bytes
    net_namespace: int = 0


class RequestHandler(Protocol):
    """Answers trainers. Called on the socket thread: it must return within microseconds and never wait."""

    def on_request(self, peer: Peer, sender: Sender, request: ConfigRequest) -> str | None:
        """The config text for this poll, "" when there is none, None to send nothing at all."""
        ...

    def on_context(self, peer: Peer, sender: Sender, message: ContextMessage) -> int:
        """How many processes are registered on that GPU for that job."""
        ...

    def on_reply_failed(self, peer: Peer, sender: Sender, text: str) -> None:
        """A config that `on_request` returned could not be sent: the trainer has not got it."""
        ...
