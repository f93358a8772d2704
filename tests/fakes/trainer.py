"""A trainer as the IPC sees one: a bound datagram socket that polls as libkineto does."""

import os
import select
import socket
import struct
import uuid


class FakeTrainer:
    """One client socket. `directory` "" is the abstract kind; `bound=False` leaves it without an address."""

    def __init__(
        self, name: str = "dynolog", directory: str = "", pids: tuple[int, ...] = (), bound: bool = True
    ) -> None:
        self.pids = pids or (os.getpid(), os.getppid())
        self._daemon = self.address_of(name, directory)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.address = self.address_of(f"dynoconfigclient{uuid.uuid4()}", directory)
        if bound:
            self.socket.bind(self.address)
        self.socket.setblocking(False)

    @staticmethod
    def address_of(name: str, directory: str) -> bytes:
        return f"{directory}/{name}".encode() if directory else b"\0" + name.encode() + b"\0"

    def poll(self, mask: int = 3, job_id: int = 0) -> None:
        """Send a request; waits while the daemon's queue is full."""
        payload = struct.pack("=iiq", mask, len(self.pids), job_id) + struct.pack(f"={len(self.pids)}i", *self.pids)
        self.send(struct.pack("=Q32s", len(payload), b"req") + payload)

    def register(self, gpu: int, job_id: int = 0) -> None:
        """Send the message that older versions announce themselves with."""
        self.send(struct.pack("=Q32siiq", 16, b"ctxt", gpu, self.pids[0], job_id))

    def send(self, datagram: bytes) -> None:
        """Send any bytes."""
        while True:
            try:
                self.socket.sendto(datagram, self._daemon)
                return
            except BlockingIOError:
                # A full queue of unix datagrams makes a socket that is not connected look writable: ask again shortly.
                select.select([], [], [], 0.001)

    def receive(self, timeout_s: float = 5.0) -> tuple[str, bytes]:
        """The next answer: its type and payload. Raises TimeoutError."""
        if not select.select([self.socket], [], [], timeout_s)[0]:
            raise TimeoutError(f"no answer within {timeout_s} s")
        reply = self.socket.recv(1 << 17)
        size, kind = struct.unpack_from("=Q32s", reply)
        assert size == len(reply) - 40
        return kind.rstrip(b"\0").decode(), reply[40:]

    def has_answer(self) -> bool:
        """Whether an answer waits."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def close(self) -> None:
        """As when the process ends: a socket file stays behind."""
        self.socket.close()
