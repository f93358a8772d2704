"""Who is the caller, and what a caller of another machine may ask."""

import logging
import os
import time

import msgspec

from dynolog.model.clock import Clock
from dynolog.model.errors import RequestError, SourceUnavailable
from dynolog.model.trace_request import Caller, Transport
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.messages import Authenticated
from dynolog.rpc.origin import Origin
from dynolog.rpc.token import TokenFileError, is_signed_with, read_token
from dynolog.sources import inet_diag

log = logging.getLogger(__name__)


class Nonces:
    """The nonces of accepted requests, for as long as the time in them would be accepted again. Bounded.

    Only a holder of the secret gets one in; when it is full, requests are refused rather than old nonces forgotten.
    """

    def __init__(self, window_ms: int, limit: int = 65536) -> None:
        self._window_ms = window_ms
        self._limit = limit
        self._seen: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def take(self, nonce: str, time_ms: int, now_ms: int) -> None:
        """Use up a nonce. Raises RequestError("replayed" or "overloaded")."""
        if nonce in self._seen:
            raise RequestError("replayed", "this signed request was already carried out: sign each request anew")
        if len(self._seen) >= self._limit:
            self._forget(now_ms)
            if len(self._seen) >= self._limit:
                raise RequestError("overloaded", "too many signed requests in the last minutes: try again later")
        self._seen[nonce] = time_ms

    def _forget(self, now_ms: int) -> None:
        oldest = now_ms - self._window_ms
        self._seen = {nonce: time_ms for nonce, time_ms in self._seen.items() if time_ms >= oldest}


class Token:
    """The daemon's secret, read again when its file changes. Blocks: used on the file threads, and once at start."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._facts: tuple[int, ...] = ()
        self._value = b""

    def value(self) -> bytes:
        """The secret. Raises TokenFileError when the file is gone or unfit: then nobody is let in."""
        try:
            now = os.stat(self.path)
        except OSError as error:
            raise TokenFileError(f"token file {self.path} cannot be read: {error.strerror}") from error
        facts = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        if facts != self._facts:
            self._value = read_token(self.path)
            self._facts = facts
        return self._value


class Gate:
    """Decides who a caller is. `token` None: signed requests cannot be checked; `open_to_all`: nobody needs to sign."""

    WINDOW_MS = 60_000

    def __init__(self, threads: FileThreads, clock: Clock, token: Token | None, open_to_all: bool) -> None:
        self._threads = threads
        self._clock = clock
        self._token = token
        self._open_to_all = open_to_all
        self._nonces = Nonces(self.WINDOW_MS)
        self._uids_are_whole = _uids_are_whole()
        self._refusals = RefusalLog()

    def admits(self, origin: Origin, public: bool) -> bool:
        """Whether this origin may ask without a signature; `public` functions are everybody's."""
        return public or self._open_to_all or origin.is_local

    def refuse_unsigned(self, origin: Origin, function: str) -> RequestError:
        """The answer to a request of another machine that should have been signed."""
        if self._token is None:
            remedy = "start the daemon with --rpc_token_file (or --rpc_allow_unauthenticated)"
        else:
            remedy = "sign it with the daemon's token: dyno --token-file FILE"
        return self.refused(
            origin,
            function,
            RequestError("unauthenticated", f"{function} from another machine needs a token: {remedy}"),
        )

    def refused(self, origin: Origin, function: str, error: RequestError) -> RequestError:
        """Log a refusal (once a minute for the same caller and reason) and hand it back."""
        self._refusals.add(origin, function, error)
        return error

    async def check(self, signed: Authenticated, origin: Origin) -> None:
        """Raises RequestError unless the signature is right, fresh and new."""
        try:
            await self._check(signed)
        except RequestError as error:
            raise self.refused(origin, "a signed request", error) from error

    async def _check(self, signed: Authenticated) -> None:
        if self._token is None:
            raise RequestError("unauthenticated", "this daemon has no --rpc_token_file, so it cannot check a signature")
        if not 16 <= len(signed.nonce) <= 64 or not signed.nonce.isascii():
            raise RequestError("bad_request", "a nonce has 16 to 64 ASCII characters")
        try:
            token = await self._threads.run(self._token.value)
        except TokenFileError as error:
            log.warning("rpc: %s", error)
            raise RequestError("unauthenticated", "the daemon cannot use its token file: its log says why") from error
        if not is_signed_with(token, signed):
            raise RequestError("unauthenticated", "the signature is wrong: the token is not this daemon's")
        now_ms = self._clock.wall_ns() // 1_000_000
        if abs(now_ms - signed.time_ms) > self.WINDOW_MS:
            apart_s = (now_ms - signed.time_ms) / 1000
            raise RequestError(
                "expired",
                f"the request was signed {apart_s:.0f} s before the daemon's time (60 allowed): set the clocks",
            )
        self._nonces.take(signed.nonce, signed.time_ms, now_ms)

    async def caller(self, origin: Origin, authenticated: bool) -> Caller:
        """The caller with its uid, which takes a look at the kernel's socket table when it came by loopback."""
        uid = origin.uid
        if origin.transport is Transport.LOOPBACK:
            uid = await self._uid_on_loopback(origin)
        if not self._uids_are_whole and uid == _overflow_uid():
            uid = None
        # With the door open to all, another machine counts as one that has the secret.
        trusted = authenticated or (self._open_to_all and not origin.is_local)
        return Caller(transport=origin.transport, uid=uid, authenticated=trusted, address=origin.who)

    async def _uid_on_loopback(self, origin: Origin) -> int | None:
        if origin.peer is None or origin.own is None:
            return None
        try:
            return inet_diag.owner_of(origin.peer, origin.own)
        except SourceUnavailable:
            return await self._threads.run(inet_diag.owner_from_proc_net, origin.peer, origin.own)


class _Refused(msgspec.Struct):
    logged_s: float
    unlogged: int = 0


class RefusalLog:
    """Logs who was refused what, each once in `every_s`, with how often it was repeated."""

    def __init__(self, every_s: float = 60.0, limit: int = 1024) -> None:
        self._every_s = every_s
        self._limit = limit
        self._seen: dict[tuple[str, str, str], _Refused] = {}

    def add(self, origin: Origin, function: str, error: RequestError) -> None:
        """Note one refusal."""
        host = origin.peer[0] if origin.peer else f"uid {origin.uid}"
        now_s = time.monotonic()
        key = (host, function, error.code)
        seen = self._seen.get(key)
        if seen is not None and now_s - seen.logged_s < self._every_s:
            seen.unlogged += 1
            return
        again = f" ({seen.unlogged} more like it before)" if seen is not None and seen.unlogged else ""
        log.warning("rpc: refused %s from %s: %s: %s%s", function, origin.who, error.code, error.sentence, again)
        if len(self._seen) >= self._limit:
            self._seen.clear()
        self._seen[key] = _Refused(now_s)


def _uids_are_whole() -> bool:
    """Whether this user namespace maps every uid. If not, all others look like the overflow uid, which is then nobody."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            return file.read().split() == ["0", "0", "4294967295"]
    except OSError:
        return True


def _overflow_uid() -> int:
    try:
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 65534
