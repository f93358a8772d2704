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
    # Each holds one chunk.
    MAX_FETCHES = 32

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
        self.fetches = 0
        self._max_connections = max_connections
        # Clients that wait for long must not take every place: the next getStatus needs one to arrive in.
        self._max_working = max(max_connections - max(max_connections // 8, 1), 1)
        self._all: set[Connection] = set()
        self._working: dict[Connection, None] = {}
        self.receiving: DeadlineQueue[Connection] = DeadlineQueue(loop, request_timeout_s, Connection.expire)
        self.sending: DeadlineQueue[Connection] = DeadlineQueue(loop, self.SEND_TIMEOUT_S, Connection.expire)
        self.lingering: DeadlineQueue[Connection] = DeadlineQueue(loop, self.LINGER_S, Connection.expire)

    def __len__(self) -> int:
        return len(self._all)

    def moved(self, connection: Connection) -> None:
        """A connection entered a phase: its time begins. May close another, or this one when there is no room."""
        self._leave_phase(connection)
        match connection.phase:
            case Phase.RECEIVING:
                self.receiving.add(connection)
            case Phase.WORKING:
                self._working[connection] = None
            case Phase.SENDING:
                self.sending.add(connection)
            case Phase.LINGERING:
                self.lingering.add(connection)
        self._all.add(connection)
        if len(self._working) > self._max_working and connection.phase is Phase.WORKING:
            self._evict(self._deaf(connection) or connection, connection)
        elif len(self._all) > self._max_connections:
            self.make_room(connection)

    def make_room(self, newest: Connection | None = None) -> bool:
        """Close the one that loses least: one that has its reply, else the oldest without a complete request, else one whose
        client has stopped listening, else the newest. False when there was none to close.
        """
        candidates = (self.lingering.oldest(), self.receiving.oldest(), self._deaf(newest))
        victim = next((one for one in candidates if one is not None and one is not newest), newest)
        if victim is None:
            return False
        self._evict(victim, newest)
        return True

    def _deaf(self, newest: Connection | None) -> Connection | None:
        return next((one for one in self._working if one.half_closed and one is not newest), None)

    def _evict(self, victim: Connection, newest: Connection | None) -> None:
        self.evicted += 1
        # A refusal may only go where no part of another reply has gone.
        if victim.phase is Phase.RECEIVING or (victim is newest and victim.phase is Phase.WORKING):
            victim.refuse("overloaded", "the daemon has too many connections: try again")
        else:
            victim.close()

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
        self._leave_phase(connection)

    def _leave_phase(self, connection: Connection) -> None:
        self.receiving.discard(connection)
        self.sending.discard(connection)
        self.lingering.discard(connection)
        self._working.pop(connection, None)

    async def close(self) -> None:
        """End all of them."""
        tasks = [connection.task for connection in self._all if connection.task is not None]
        for connection in list(self._all):
            connection.close()
        for queue in (self.receiving, self.sending, self.lingering):
            queue.stop()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
