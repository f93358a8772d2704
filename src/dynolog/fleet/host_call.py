"""One call to one of many daemons, with a deadline for the whole of it."""

import asyncio
import contextlib
import errno
import socket
import time
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dynolog.fleet.resolver import Address, Resolver
from dynolog.fleet.targets import FleetTarget
from dynolog.model.errors import RequestError
from dynolog.model.json_text import encode_json
from dynolog.rpc.client import raise_if_failed
from dynolog.rpc.client_tls import ClientTls
from dynolog.rpc.foreign import is_tls_alert, what_answers
from dynolog.rpc.framing import LENGTH, frame
from dynolog.rpc.messages import GetStatus, GetVersion, Request
from dynolog.rpc.tls_errors import is_tls_error, why_daemon_is_not_trusted
from dynolog.rpc.token import read_token, sign

if TYPE_CHECKING:
    from dynolog.fleet.tls_stream import TlsStream

T = TypeVar("T")
MAX_REPLY_BYTES = 16 << 20
_PIECE_BYTES = 1 << 16
_CONNECT_TRIES = 2
_PAUSE_S = 0.2
_RETRIED = (errno.ECONNREFUSED, errno.ETIMEDOUT)


class Outcome(StrEnum):
    """What became of one call to one host."""

    ANSWERED = "answered"
    REFUSED = "refused"  # the daemon says `failed`
    UNREACHABLE = "unreachable"  # no connection
    SILENT = "silent"  # a connection and no answer in time
    NO_ANSWER = "no_answer"  # closed without an answer: an original daemon that does not know the function
    NOT_UNDERSTOOD = "not_understood"  # no dynolog, or one of another version


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One host's answer: `body` is the reply's JSON when it answered; else `error` says what happened, `code` in one word.

    `sent_wall_ns` and `received_wall_ns` are by this machine's clock, for the clock offset; `attempts` counts connects.
    """

    target: FleetTarget
    outcome: Outcome
    body: bytes = b""
    error: str = ""
    code: str = ""
    attempts: int = 1
    sent_wall_ns: int = 0
    received_wall_ns: int = 0
    elapsed_s: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether there is a reply in `body`."""
        return self.outcome is Outcome.ANSWERED

    def decode(self, reply_type: type[T]) -> T | None:
        """The typed reply; None when it did not answer, or answered something else."""
        if not self.answered:
            return None
        try:
            return msgspec.json.decode(self.body, type=reply_type)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None


class _Trouble(Exception):  # noqa: N818 - an outcome on its way up
    def __init__(self, outcome: Outcome, sentence: str) -> None:
        super().__init__(sentence)
        self.outcome = outcome
        self.sentence = sentence


class _Call:
    """The state of one call: how far it came decides what a deadline means."""

    def __init__(self, timeout_s: float) -> None:
        self.started_s = time.monotonic()
        self.deadline_s = self.started_s + timeout_s
        self.attempts = 0
        self.connected = False
        self.sent_wall_ns = 0
        self.received_wall_ns = 0

    def left_s(self) -> float:
        return self.deadline_s - time.monotonic()


class HostCaller:
    """Calls daemons; the secret and the certificates are read once.

    Raises TokenFileError or ClientTlsError when it is made with files that cannot be used.
    """

    def __init__(self, token_file: str = "", tls: ClientTls | None = None) -> None:
        self._token = read_token(token_file) if token_file else b""
        self._tls = tls
        if tls is not None:
            tls.context()
        self._resolver = Resolver()

    async def ask(self, target: FleetTarget, request: Request, timeout_s: float) -> HostAnswer:
        """Ask once. Never raises but when cancelled: what went wrong is in the answer.

        `timeout_s` is the whole time: looking the name up, connecting (once more when refused or timed out), and the answer.
        """
        call = _Call(timeout_s)
        body, error, code = b"", "", ""
        try:
            async with asyncio.timeout(timeout_s):
                body = await self._exchange(call, target, request)
            raise_if_failed(body)
            outcome = Outcome.ANSWERED
        except RequestError as refusal:
            outcome, error, code = Outcome.REFUSED, refusal.sentence, refusal.code
        except _Trouble as trouble:
            outcome, error = trouble.outcome, trouble.sentence
        except TimeoutError:
            if call.connected:
                outcome, error = Outcome.SILENT, f"it took the connection and did not answer within {timeout_s:g} s"
            else:
                outcome, error = Outcome.UNREACHABLE, f"no connection within {timeout_s:g} s"
        return HostAnswer(
            target=target,
            outcome=outcome,
            body=body if outcome is Outcome.ANSWERED else b"",
            error=error,
            code=code or ("" if outcome is Outcome.ANSWERED else str(outcome)),
            attempts=call.attempts,
            sent_wall_ns=call.sent_wall_ns,
            received_wall_ns=call.received_wall_ns,
            elapsed_s=time.monotonic() - call.started_s,
        )

    async def _exchange(self, call: _Call, target: FleetTarget, request: Request) -> bytes:
        with await self._connect(call, target) as sock:
            call.connected = True
            data = frame(self._encode(request))
            try:
                stream = await self._stream(sock, target)
                call.sent_wall_ns = time.time_ns()
                # One that refuses at once may close first; its answer is still there.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    await stream.send(data)
                return await _receive(call, stream)
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise
                if self._tls is not None and is_tls_error(error):
                    sentence = why_daemon_is_not_trusted(error, "the daemon", self._tls.name_for(target.host))
                    raise _Trouble(Outcome.UNREACHABLE, sentence) from error
                sentence = f"it dropped the connection ({(error.strerror or str(error)).lower()}): is it a dynolog?"
                raise _Trouble(Outcome.NO_ANSWER, sentence) from error

    async def _stream(self, sock: socket.socket, target: FleetTarget) -> "_PlainStream | TlsStream":
        if self._tls is None:
            return _PlainStream(sock)
        # It imports ssl, which a fleet without TLS does without.
        from dynolog.fleet.tls_stream import TlsStream  # noqa: PLC0415

        stream = TlsStream(sock, self._tls, target.host)
        await stream.handshake()
        return stream

    def _encode(self, request: Request) -> bytes:
        body = encode_json(request)
        public = isinstance(request, GetVersion) or (isinstance(request, GetStatus) and not request.verbose)
        return sign(self._token, body, time.time_ns()) if self._token and not public else body

    async def _connect(self, call: _Call, target: FleetTarget) -> socket.socket:
        try:
            addresses = await self._resolver.addresses(target.host, target.port)
        except OSError as error:
            raise _Trouble(Outcome.UNREACHABLE, f"its name cannot be resolved ({error.strerror or error})") from error
        failure: OSError = OSError("it has no address")
        for tries_left in range(_CONNECT_TRIES, 0, -1):
            call.attempts += 1
            for index, address in enumerate(addresses):
                share_s = call.left_s() / tries_left / (len(addresses) - index)
                try:
                    return await _connect_to(address, share_s)
                except OSError as error:
                    failure = error
            if not (isinstance(failure, TimeoutError) or failure.errno in _RETRIED):
                break
            if tries_left > 1 and failure.errno == errno.ECONNREFUSED:
                await asyncio.sleep(min(_PAUSE_S, max(call.left_s() / 2, 0)))
        raise _Trouble(Outcome.UNREACHABLE, _why_not(failure)) from failure


class _PlainStream:
    """A connection without TLS, with the calls of fleet.tls_stream.TlsStream."""

    def __init__(self, sock: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock

    async def send(self, data: bytes) -> None:
        """All of it."""
        await self._loop.sock_sendall(self._sock, data)

    async def receive(self) -> bytes:
        """What has arrived next, b"" at the end."""
        return await self._loop.sock_recv(self._sock, _PIECE_BYTES)


async def _connect_to(address: Address, timeout_s: float) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        async with asyncio.timeout(max(timeout_s, 0.001)):
            await asyncio.get_running_loop().sock_connect(sock, where)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def _why_not(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time: is the machine up?"
    if error.errno == errno.ECONNREFUSED:
        return "no daemon listens there (connection refused): start `dynolog --rpc_bind_address=::` on it"
    return f"no connection ({(error.strerror or str(error)).lower()})"


async def _receive(call: _Call, stream: "_PlainStream | TlsStream") -> bytes:
    received = bytearray()
    length = -1
    while True:
        if length < 0 and len(received) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(received)
            if not 0 < length <= MAX_REPLY_BYTES:
                raise _Trouble(Outcome.NOT_UNDERSTOOD, f"it {what_answers(bytes(received[: LENGTH.size]))}")
        if length >= 0 and len(received) >= LENGTH.size + length:
            return bytes(received[LENGTH.size : LENGTH.size + length])
        piece = await stream.receive()
        if not received:
            call.received_wall_ns = time.time_ns()
        if not piece:
            if is_tls_alert(bytes(received)):
                raise _Trouble(Outcome.NOT_UNDERSTOOD, f"it {what_answers(bytes(received))}")
            if received:
                raise _Trouble(Outcome.NO_ANSWER, "it closed the connection in the middle of its answer")
            raise _Trouble(
                Outcome.NO_ANSWER,
                "it closed the connection without an answer, as the original dynolog does",
            )
        received += piece
