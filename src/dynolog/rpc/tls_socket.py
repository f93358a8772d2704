"""TLS on a non-blocking socket, with the calls of a socket, so that a connection need not know of it."""

import contextlib
import socket
import ssl
from enum import Enum

from dynolog.rpc.certificate import CertificateNames, names_of

# Ciphertext taken in one call, and plaintext that one record holds at most: what a call costs is bounded.
_RECEIVE_BYTES = 1 << 14
_WRITE_BYTES = 1 << 16
# What OpenSSL has to say by itself (alerts, answers to key updates) and a client does not take.
_MAX_UNSENT_BYTES = 1 << 17


class Step(Enum):
    """What a handshake waits for."""

    DONE = 0
    READ = 1
    WRITE = 2


class TlsSocket:
    """The server's end. Bytes in between are in memory; what is there at most is a record each way and one unsent piece.

    Every error of TLS is an OSError (ssl.SSLError), as whoever uses a socket expects.
    """

    __slots__ = ("_ended", "_incoming", "_outgoing", "_promised_bytes", "_shut", "_sock", "_tls", "family")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._promised_bytes = 0
        self._ended = False
        self._shut = False
        self.family = sock.family

    # --- handshake -----------------------------------------------------------------------------------------------------

    def shake(self) -> Step:
        """Go on as far as what has arrived allows; a millisecond or two. Raises ssl.SSLError, or OSError when the client left."""
        if self._outgoing.pending and not self._flush():
            return Step.WRITE
        self._feed()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._ended:
                raise ConnectionResetError("it closed in the middle of the handshake") from None
            return Step.READ if self._flush() else Step.WRITE
        except ssl.SSLError:
            # The alert says to the client what is wrong.
            with contextlib.suppress(OSError):
                self._flush()
            raise
        return Step.DONE if self._flush() else Step.WRITE

    @property
    def certificate(self) -> CertificateNames | None:
        """The names of the client, once the handshake is done and if it had to show a certificate."""
        return names_of(self._tls.getpeercert())

    # --- as a socket ---------------------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Of the socket below."""
        return self._sock.fileno()

    def getpeername(self) -> tuple[str, int]:
        """Of the socket below. Raises OSError."""
        name: tuple[str, int] = self._sock.getpeername()
        return name

    def getsockname(self) -> tuple[str, int]:
        """Of the socket below."""
        name: tuple[str, int] = self._sock.getsockname()
        return name

    def recv(self, _limit_bytes: int) -> bytes:
        """What has arrived, b"" at the end. Raises BlockingIOError when there is nothing, OSError when TLS was broken."""
        if self._shut:
            # Read away only: the session has ended, and nobody looks at it.
            return self._sock.recv(_RECEIVE_BYTES)
        self._feed()
        plain = self._decrypted()
        if self._outgoing.pending:
            self._flush()
            if self._outgoing.pending > _MAX_UNSENT_BYTES:
                raise ConnectionAbortedError("it takes no answers of TLS")
        if not plain and not self._ended:
            raise BlockingIOError
        return plain

    def send(self, data: bytes | memoryview) -> int:
        """How much of `data` is on its way. Raises BlockingIOError when nothing could be added; then come again with the same bytes."""
        if not self._promised_bytes:
            self._promised_bytes = self._tls.write(memoryview(data)[:_WRITE_BYTES])
        if not self._flush():
            raise BlockingIOError
        sent, self._promised_bytes = self._promised_bytes, 0
        return sent

    def shutdown(self, how: int) -> None:
        """Say that nothing more comes. Raises OSError."""
        self._say_goodbye()
        self._sock.shutdown(how)

    def close(self) -> None:
        """End it in any state."""
        self._say_goodbye()
        self._sock.close()

    def _feed(self) -> None:
        try:
            data = self._sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        if data:
            self._incoming.write(data)
        else:
            self._ended = True

    def _decrypted(self) -> bytes:
        pieces = []
        try:
            while piece := self._tls.read(_RECEIVE_BYTES):
                pieces.append(piece)
            self._ended = True  # by the client's close_notify
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = True
        return b"".join(pieces)

    def _flush(self) -> bool:
        """Hand over ciphertext; whether the kernel took all of it. What it did not take is kept, at the front."""
        while self._outgoing.pending:
            data = self._outgoing.read()
            try:
                sent = self._sock.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                rest = data[sent:]
                later = self._outgoing.read()
                self._outgoing.write(rest + later)
                return False
        return True

    def _say_goodbye(self) -> None:
        if self._shut:
            return
        self._shut = True
        # It first sends our close_notify, then asks for the client's, which nobody waits for.
        with contextlib.suppress(OSError, ValueError):
            self._tls.unwrap()
        with contextlib.suppress(OSError):
            self._flush()
