"""What the IPC counts, shared by all its endpoints."""

import msgspec


class IpcCounters(msgspec.Struct):
    """Counts since start. `requests` were well-formed; each ends in a reply, a dropped reply, or a handler that wanted none.

    `unanswerable` datagrams came from a socket without an address, or with one that its owner would not accept an answer on;
    `handler_failures` are requests answered with nothing because the daemon itself failed.
    """

    requests: int = 0
    replies: int = 0
    dropped_replies: int = 0
    malformed: int = 0
    unanswerable: int = 0
    handler_failures: int = 0
