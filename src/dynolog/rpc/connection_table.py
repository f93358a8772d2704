"""All connections of the server, and the limits on them."""

import asyncio

from dynolog.rpc.connection import Connection, Phase
from dynolog.rpc.deadline_queue import DeadlineQueue
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.methods import Methods


class ConnectionTable:
    """Who is connected, in which phase, since when; who goes when there are too many or they hold too much.

    A request that is answered at once never enters it, so those work however full it is.
    """

    # Room for a client that reads slowly, and for one that still sends after its reply.
    SEND_TIMEOUT_S = 30.0
    LINGER_S = 2.0
    # Unfinished requests and unsent replies of all connections together.
    MAX_HELD_BYTES = 32 << 20

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        methods: Methods,
        threads: FileThreads,
        max_connections: int,
        request_timeout_s: float,
    ) -> None:
        self.loop = loop
        self.methods = methods
        self.threads = threads
        self.requests = 0
        self.refused_frames = 0
        self.evicted = 0
        self._max_connections = max_connections
        self._all: set[Connection] = set()
        self.receiving: DeadlineQueue[Connection] = DeadlineQueue(loop, request_timeout_s, Connection.expire)
        self.sending: DeadlineQueue[Connection] = DeadlineQueue(loop, self.SEND_TIMEOUT_S, Connection.expire)
        self.lingering: DeadlineQueue[Connection] = DeadlineQueue(loop, self.LINGER_S, Connection.expire)

    def __len__(self) -> int:
        return len(self._all)

    def moved(self, connection: Connection) -> None:
        """A connection entered a phase: its time begins. May close another, or this one when there is no room."""
        self.receiving.discard(connection)
        self.sending.discard(connection)
        match connection.phase:
            case Phase.RECEIVING:
                self.receiving.add(connection)
            case Phase.SENDING:
                self.sending.add(connection)
            case Phase.LINGERING:
                self.lingering.add(connection)
        if connection not in self._all:
            self._all.add(connection)
            if len(self._all) > self._max_connections:
                self.make_room(connection)

    def make_room(self, newest: Connection | None = None) -> bool:
        """Close the one that loses least: one that has its reply, else the oldest without a complete request, else one whose
        client has stopped listening, else the newest. False when there was none to close.
        """
        victim = self.lingering.oldest()
        if victim is None or victim is newest:
            victim = self.receiving.oldest()
        if victim is None or victim is newest:
            victim = next((one for one in self._all if one.half_closed and one is not newest), newest)
        if victim is None:
            return False
        self.evicted += 1
        # A refusal may only go where no part of another reply has gone.
        if victim.phase is Phase.RECEIVING or (victim is newest and victim.phase is Phase.WORKING):
            victim.refuse("overloaded", "the daemon has too many connections: try again")
        else:
            victim.close()
        return True

    def grew(self, connection: Connection) -> None:
        """A connection holds more than before. When all hold too much, the greediest go first."""
        if connection.held_bytes < 1 << 14:
            return
        total = sum(one.held_bytes for one in self._all)
        while total > self.MAX_HELD_BYTES and len(self._all) > 1:
            victim = max(self._all, key=lambda one: one.held_bytes)
            total -= victim.held_bytes
            self.evicted += 1
            victim.close()

    def forget(self, connection: Connection) -> None:
        """A connection ended."""
        self._all.discard(connection)
        self.receiving.discard(connection)
        self.sending.discard(connection)
        self.lingering.discard(connection)

    async def close(self) -> None:
        """End all of them."""
        tasks = [connection.task for connection in self._all if connection.task is not None]
        for connection in list(self._all):
            connection.close()
        for queue in (self.receiving, self.sending, self.lingering):
            queue.stop()
        if tasks:
            await asyncio.wait(tasks)
