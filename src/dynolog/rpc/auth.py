"""Who is the caller, and what may they ask."""

import logging
import os
import time

from dynolog.model.clock import Clock
from dynolog.model.errors import RequestError, SourceUnavailable
from dynolog.model.role import Role
from dynolog.model.trace_request import Caller, Transport
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.messages import Authenticated
from dynolog.rpc.origin import Origin
from dynolog.rpc.policy import MAIN_TOKEN, Identity, Policy
from dynolog.rpc.refusal_log import RefusalLog
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

    COMPLAIN_EVERY_S = 60.0

    def __init__(self, path: str) -> None:
        self.path = path
        self._facts: tuple[int, ...] = ()
        self._value = b""
        self._complained_s = float("-inf")

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

    def complain(self, error: TokenFileError) -> None:
        """Say once a minute why the file lets nobody in: anybody can send something signed."""
        now_s = time.monotonic()
        if now_s - self._complained_s >= self.COMPLAIN_EVERY_S:
            self._complained_s = now_s
            log.warning("rpc: %s", error)


class Gate:
    """Decides who a caller is and may be. `token` None: there is no --rpc_token_file; `open_to_all`: nobody needs to sign."""

    WINDOW_MS = 60_000

    def __init__(self, threads: FileThreads, clock: Clock, token: Token | None, open_to_all: bool) -> None:
        self._threads = threads
        self._clock = clock
        self._token = token
        self._tokens: dict[str, Token] = {}
        self._open_to_all = open_to_all
        self._policy = Policy()
        self._daemon_uid = os.geteuid()
        self._born_ns = clock.monotonic_ns()
        self._nonces = Nonces(self.WINDOW_MS)
        self._uids_are_whole = _uids_are_whole()
        self.refusals = RefusalLog()
        self.follow(self._policy)

    def follow(self, policy: Policy) -> None:
        """From now on, these rules hold."""
        self._policy = policy
        self._tokens = {MAIN_TOKEN: self._token} if self._token is not None else {}
        self._tokens |= {rule.token_file: Token(rule.token_file) for rule in policy.rules if rule.token_file}

    @property
    def knows_strangers(self) -> bool:
        """Whether a rule can let a caller of another machine in."""
        return self._policy.knows_strangers

    def admits_at_once(self, origin: Origin, role: Role) -> bool:
        """Whether this origin may do what needs `role` whoever it is; if not, `caller` tells."""
        return role is Role.NONE or (origin.is_local and role <= Role.READ and not self._policy.is_file)

    def require(self, caller: Caller, role: Role, origin: Origin, function: str) -> None:
        """Raises RequestError unless the caller has the role."""
        if caller.role >= role:
            return
        if caller.role is Role.NONE and not (origin.is_local or caller.name):
            raise self.refuse_unsigned(origin, function)
        remedy = "--rpc_authz gives roles"
        if role is Role.ADMIN and not self._policy.is_file:
            remedy = "ask as root, as the daemon's user, or with a token"
        who = caller.name or (origin.who if caller.uid is None else f"uid {caller.uid}")
        raise RequestError(
            "forbidden", f"{function} needs the role {role.word}, and {who} has {caller.role.word}: {remedy}"
        )

    def refuse_unsigned(self, origin: Origin, function: str) -> RequestError:
        """The answer to a request of another machine that proved nothing."""
        if self._tokens:
            remedy = "sign it with a token that the daemon knows: dyno --token-file FILE"
        elif self._policy.is_file:
            remedy = "no rule of --rpc_authz means this caller: add one with its certificate, or with a token_file"
        else:
            remedy = "start the daemon with --rpc_token_file (or --rpc_allow_unauthenticated)"
        return self.refused(
            origin,
            function,
            RequestError("unauthenticated", f"{function} from another machine needs a token: {remedy}"),
        )

    def refused(self, origin: Origin, function: str, error: RequestError) -> RequestError:
        """Log a refusal (once a minute for the same caller and reason) and hand it back."""
        self.refusals.add(origin, function, error)
        return error

    async def check(self, signed: Authenticated, origin: Origin) -> str:
        """The token of a signed request, as Identity has it. Raises RequestError unless the signature is right, fresh and new."""
        try:
            return await self._check(signed)
        except RequestError as error:
            raise self.refused(origin, "a signed request", error) from error

    async def _check(self, signed: Authenticated) -> str:
        if not self._tokens:
            raise RequestError(
                "unauthenticated",
                "this daemon has no --rpc_token_file, so it cannot check a signature: leave --token-file out, or start it with that flag",
            )
        if not 16 <= len(signed.nonce) <= 64 or not signed.nonce.isascii():
            raise RequestError("bad_request", "a nonce has 16 to 64 ASCII characters")
        signer = await self._signer(signed)
        if signer is None:
            raise RequestError(
                "unauthenticated",
                "the signature is wrong: give the secret of this daemon's --rpc_token_file as --token-file",
            )
        now_ms = self._clock.wall_ns() // 1_000_000
        if abs(now_ms - signed.time_ms) > self.WINDOW_MS:
            apart_s = (now_ms - signed.time_ms) / 1000
            raise RequestError(
                "expired",
                f"the request was signed {apart_s:.0f} s before the daemon's time (60 allowed): set the clocks",
            )
        alive_ms = (self._clock.monotonic_ns() - self._born_ns) // 1_000_000
        if now_ms - signed.time_ms > alive_ms + 1:
            # The nonces of the daemon before are not known. By its age, so that a step of the clock since the start shuts nobody out.
            raise RequestError(
                "expired",
                "the request was signed before this daemon began, so it may have been carried out already: sign it anew, or set the clocks",
            )
        self._nonces.take(signed.nonce, signed.time_ms, now_ms)
        return signer

    async def _signer(self, signed: Authenticated) -> str | None:
        """Which token it is signed with. One whose file cannot be used lets nobody in; when none can, RequestError."""
        usable = False
        for name, token in self._tokens.items():
            try:
                secret = await self._threads.run(token.value)
            except TokenFileError as error:
                token.complain(error)
                continue
            usable = True
            if is_signed_with(secret, signed):
                return name
        if not usable:
            raise RequestError("unauthenticated", "the daemon cannot use its token file: its log says why")
        return None

    async def caller(self, origin: Origin, token: str | None) -> Caller:
        """The caller with its uid, which takes a look at the kernel's socket table when it came by loopback, and with its role."""
        uid = origin.uid
        if origin.transport is Transport.LOOPBACK:
            uid = await self._uid_on_loopback(origin)
        if not self._uids_are_whole and uid == _overflow_uid():
            uid = None
        identity = Identity(
            transport=origin.transport,
            uid=uid,
            gids=origin.gids,
            certificate=origin.certificate,
            token=token,
            host=origin.peer[0] if origin.peer else "",
        )
        grant = self._policy.grant(identity, self._daemon_uid, self._open_to_all)
        return Caller(
            transport=origin.transport,
            uid=uid,
            authenticated=grant.for_everybody,
            address=origin.who,
            role=grant.role,
            name=grant.name,
        )

    async def _uid_on_loopback(self, origin: Origin) -> int | None:
        if origin.peer is None or origin.own is None:
            return None
        try:
            return inet_diag.owner_of(origin.peer, origin.own)
        except SourceUnavailable:
            return await self._threads.run(inet_diag.owner_from_proc_net, origin.peer, origin.own)


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
