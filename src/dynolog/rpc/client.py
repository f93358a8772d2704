"""The client side of the RPC: where a daemon is, and one call to it. Blocking, and light enough for a command line."""

import errno
import time
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

import msgspec

from dynolog.model.errors import DynologError, RequestError
from dynolog.model.json_text import encode_json
from dynolog.rpc.channel import BadLength, Channel, ClosedEarly, NoHandshake
from dynolog.rpc.client_tls import ClientTls
from dynolog.rpc.foreign import is_tls_alert, what_answers
from dynolog.rpc.messages import GetStatus, GetVersion, Request, WaitTrace
from dynolog.rpc.tls_errors import is_tls_error, why_daemon_is_not_trusted
from dynolog.rpc.token import read_token, sign
from dynolog.rpc.unix_path import socket_here

T = TypeVar("T")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon to talk to: TCP `hostname`:`port`, or a unix socket path when `unix` is set. Timeout in seconds for a whole call.

    With `token_file` requests are signed with the secret in it (all but plain status and version, which need none). With `tls`
    TCP is spoken over TLS; the unix socket never is.
    """

    hostname: str = "localhost"
    port: int = 1778
    unix: str = ""
    token_file: str = ""
    timeout_s: float = 10.0
    tls: ClientTls | None = None

    @property
    def is_local(self) -> bool:
        """Whether the daemon is on this machine by its very address."""
        return bool(self.unix) or self.hostname in ("localhost", "::1") or self.hostname.startswith("127.")

    def __str__(self) -> str:
        if self.unix:
            return self.unix
        return f"[{self.hostname}]:{self.port}" if ":" in self.hostname else f"{self.hostname}:{self.port}"


class CannotReach(DynologError):  # noqa: N818 - it is a state of the world
    """No daemon answers at the target; the sentence says what to start."""


class NoAnswer(DynologError):  # noqa: N818 - as above
    """The daemon closed the connection without a reply: an original daemon does so when it does not know a function."""


class RawReply(msgspec.Struct, frozen=True):
    """A reply as it came: the length that its frame says, in bytes, and the text."""

    length: int
    text: str


class _Status(msgspec.Struct):
    status: str | int | bool | None = None
    code: str = "error"
    error: str = ""


def call(target: Target, request: Request, reply_type: type[T]) -> T:
    """The reply to a request.

    Raises CannotReach, NoAnswer, RequestError for a reply that says `failed`, and DynologError for one that is not understood.
    """
    body = encode(target, request)
    extra_s = max(request.timeout_s, 0.0) if isinstance(request, WaitTrace) else 0.0
    return decode(target, _exchange(target, body, target.timeout_s + extra_s), reply_type)


def call_raw(target: Target, request: Mapping[str, Any] | bytes) -> RawReply:
    """The reply as it came, to a request that is sent as it is (unsigned). Raises CannotReach and NoAnswer."""
    body = request if isinstance(request, bytes) else encode_json(request)
    reply = _exchange(target, body, target.timeout_s)
    return RawReply(len(reply), reply.decode("utf-8", "replace"))


def encode(target: Target, request: Request) -> bytes:
    """The body that asks `request` of this target, signed when it has a token file. Raises TokenFileError."""
    body = encode_json(request)
    public = isinstance(request, GetVersion) or (isinstance(request, GetStatus) and not request.verbose)
    if target.token_file and not public:
        return sign(read_token(target.token_file), body, time.time_ns())
    return body


def decode(target: Target, body: bytes, reply_type: type[T]) -> T:
    """A typed reply. Raises RequestError for one that says `failed`, DynologError for one that is not understood."""
    if b'"failed' in body[:256]:
        raise_if_failed(body)
    try:
        return msgspec.json.decode(body, type=reply_type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise_if_failed(body)
        raise DynologError(
            f"the reply of {target} is not understood ({error}): is it a dynolog of another version?"
        ) from error


def raise_if_failed(body: bytes) -> None:
    """Raises RequestError when a reply says `failed`; the original's has the reason in `status` itself."""
    try:
        reply = msgspec.json.decode(body, type=_Status)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return
    if isinstance(reply.status, str) and reply.status.startswith("failed"):
        raise RequestError(reply.code, reply.error or reply.status)


def _exchange(target: Target, body: bytes, timeout_s: float) -> bytes:
    with connect(target, timeout_s) as channel:
        try:
            channel.send_frame(body)
            return channel.receive_frame()
        except OSError as error:
            raise_for_lost(target, error, timeout_s)


def connect(target: Target, timeout_s: float) -> Channel:
    """A connection that must be done with in `timeout_s`. Raises CannotReach."""
    try:
        if target.unix:
            return Channel.to_unix(target.unix, timeout_s)
        return Channel.to_tcp(target.hostname, target.port, timeout_s, target.tls)
    except OSError as error:
        if target.tls is not None and not target.unix:
            raise_if_not_trusted(target, error)
        raise CannotReach(_unreachable(target, error)) from error


def raise_if_not_trusted(target: Target, error: OSError) -> None:
    """Raises CannotReach for an error of TLS, with what to do."""
    if target.tls is None:
        return
    if is_tls_error(error):
        raise CannotReach(
            why_daemon_is_not_trusted(error, str(target), target.tls.name_for(target.hostname))
        ) from error
    if isinstance(error, NoHandshake):
        raise CannotReach(
            f"{target} took the connection and does not answer in TLS: if it is a dynolog without TLS, leave --tls-ca out"
        ) from error


def raise_for_lost(target: Target, error: OSError, timeout_s: float) -> NoReturn:
    """Turn what happened to a connection into what a person needs to know."""
    # With TLS 1.3 a daemon says only after the handshake what it thinks of our certificate.
    if is_tls_error(error):
        raise_if_not_trusted(target, error)
    match error:
        case TimeoutError():
            raise CannotReach(
                f"{target} accepted the connection but did not answer within {timeout_s:g} s: "
                "is it a dynolog? give it longer with --timeout"
            ) from error
        case ClosedEarly() if not error.received:
            raise NoAnswer(
                f"{target} closed the connection without an answer: it is no dynolog (check --hostname and --port), "
                "or an original one that does not know this function"
            ) from error
        case ClosedEarly() if is_tls_alert(error.received):
            raise CannotReach(f"{target} {what_answers(error.received)}") from error
        case ClosedEarly():
            raise NoAnswer(
                f"{target} closed the connection in the middle of its answer ({error}): is it a dynolog, and was it stopped? try again"
            ) from error
        case BadLength():
            raise CannotReach(f"{target} {what_answers(error.header)}") from error
        case _:
            raise NoAnswer(
                f"{target} dropped the connection ({(error.strerror or str(error)).lower()}): is it a dynolog? check --hostname and --port"
            ) from error


def _unreachable(target: Target, error: OSError) -> str:
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    if isinstance(error, TimeoutError):
        reason = "no answer in time"
    if target.unix:
        if error.errno == errno.EACCES:
            return f"no permission to connect to {target.unix}: use --hostname and --port, or ask its owner"
        return (
            f"no daemon answers on {target.unix} ({reason}): start one with "
            f"`dynolog --enable_ipc_monitor --rpc_unix_socket={target.unix}`, or use --hostname and --port"
        )
    if error.errno in (errno.ECONNREFUSED, errno.EADDRNOTAVAIL) and target.is_local:
        here = socket_here()
        other = f"try --unix {here}, which is there" if here else "name another with --hostname and --port"
        return f"no daemon answers on {target} ({reason}): start one with `dynolog --enable_ipc_monitor`, or {other}"
    if not target.is_local and error.errno == errno.ECONNREFUSED:
        return (
            f"no daemon answers on {target} ({reason}): start `dynolog` there; it listens on its own machine only, "
            "unless --rpc_bind_address=:: is given"
        )
    return f"cannot reach {target} ({reason}): check --hostname and --port, and that `dynolog` runs there"
