"""TLS over the loop's sockets: a few kilobytes a host, where the streams of asyncio take a hundred."""

import asyncio
import socket
import ssl

from dynolog.rpc.client_tls import ClientTls

_PIECE_BYTES = 1 << 14


class TlsStream:
    """One connection to a daemon. Made for a connected non-blocking socket, which stays its owner's to close."""

    def __init__(self, sock: socket.socket, tls: ClientTls, host: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = tls.context().wrap_bio(self._incoming, self._outgoing, server_hostname=tls.name_for(host))

    async def handshake(self) -> None:
        """Raises ssl.SSLError when the daemon is not to be trusted, or speaks no TLS."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._feed():
                    raise ConnectionResetError("it ended the connection in the TLS handshake") from None
            except ssl.SSLError:
                await self._flush()  # the alert, for the daemon's log
                raise
            else:
                await self._flush()
                return

    async def send(self, data: bytes) -> None:
        """All of it."""
        self._tls.write(data)
        await self._flush()

    async def receive(self) -> bytes:
        """What has arrived next, b"" at the end. Raises ssl.SSLError for what the daemon says of our certificate."""
        while True:
            try:
                return self._tls.read(_PIECE_BYTES)
            except ssl.SSLWantReadError:
                if not await self._feed():
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    async def _flush(self) -> None:
        while self._outgoing.pending:
            await self._loop.sock_sendall(self._sock, self._outgoing.read(_PIECE_BYTES))

    async def _feed(self) -> bool:
        data = await self._loop.sock_recv(self._sock, _PIECE_BYTES)
        self._incoming.write(data)
        return bool(data)
