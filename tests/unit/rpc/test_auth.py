"""Tokens: right, wrong, replayed, expired; and who refused callers are."""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.model.errors import RequestError
from dynolog.model.trace_request import Transport
from dynolog.rpc.auth import Gate, Nonces, Token
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.messages import Authenticated
from dynolog.rpc.origin import Origin
from dynolog.rpc.refusal_log import RefusalLog
from dynolog.rpc.token import TokenFileError, read_token, sign

NOW_NS = 1_700_000_000_000_000_000
REMOTE = Origin(transport=Transport.REMOTE, who="10.0.0.9 port 4", peer=("10.0.0.9", 4), own=("10.0.0.1", 1778))
SECRET = b"correct horse battery staple"


class FixedClock:
    def __init__(self) -> None:
        self.ns = NOW_NS
        self.boot_ns = 0

    def monotonic_ns(self) -> int:
        return self.boot_ns

    def wall_ns(self) -> int:
        return self.ns


class Guard:
    """A gate with a token file, and a loop to ask it on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FixedClock()
        self.write(SECRET)

    def write(self, token: bytes, mode: int = 0o600) -> None:
        self.path.write_bytes(token + b"\n")
        self.path.chmod(mode)

    def check(self, *signed: bytes, alive_s: float = 3600) -> None:
        async def all_of_them() -> None:
            gate = Gate(FileThreads(asyncio.get_running_loop()), self.clock, Token(str(self.path)), open_to_all=False)
            self.clock.boot_ns += int(alive_s * 10**9)
            for one in signed:
                await gate.check(msgspec.json.decode(one, type=Authenticated), REMOTE)

        run(all_of_them())


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return Guard(tmp_path / "token")


def refusal(guard: Guard, *signed: bytes) -> str:
    with pytest.raises(RequestError) as caught:
        guard.check(*signed)
    return caught.value.code


def test_a_right_signature_is_accepted(guard: Guard) -> None:
    guard.check(sign(SECRET, b'{"fn":"listProcesses"}', NOW_NS))


def test_the_secret_does_not_travel(guard: Guard) -> None:
    assert SECRET not in sign(SECRET, b"{}", NOW_NS)


def test_a_wrong_token_is_refused(guard: Guard) -> None:
    assert refusal(guard, sign(b"another secret that is long", b"{}", NOW_NS)) == "unauthenticated"


@pytest.mark.parametrize(
    "change", [{"request": "{ }"}, {"time_ms": 1_700_000_000_001}, {"nonce": "f" * 32}, {"mac": "é"}]
)
def test_anything_changed_is_refused(guard: Guard, change: dict[str, Any]) -> None:
    signed = msgspec.json.decode(sign(SECRET, b"{}", NOW_NS), type=Authenticated)
    assert refusal(guard, msgspec.json.encode(msgspec.structs.replace(signed, **change))) == "unauthenticated"


def test_a_replayed_request_is_refused(guard: Guard) -> None:
    signed = sign(SECRET, b"{}", NOW_NS)
    assert refusal(guard, signed, signed) == "replayed"
    guard.check(sign(SECRET, b"{}", NOW_NS), sign(SECRET, b"{}", NOW_NS))


def test_what_the_daemon_before_may_have_carried_out_is_refused(guard: Guard) -> None:
    """A restart forgets the nonces: whoever recorded a request must not have it carried out once more."""
    with pytest.raises(RequestError, match="before this daemon began"):
        guard.check(sign(SECRET, b"{}", NOW_NS - 3 * 10**9), alive_s=2)
    guard.check(sign(SECRET, b"{}", NOW_NS - 3 * 10**9), alive_s=4)
    guard.check(sign(SECRET, b"{}", NOW_NS), alive_s=0)


@pytest.mark.parametrize("off_s", [-61, 61])
def test_a_request_signed_too_long_ago_or_ahead_is_refused(guard: Guard, off_s: int) -> None:
    assert refusal(guard, sign(SECRET, b"{}", NOW_NS + off_s * 10**9)) == "expired"
    guard.check(sign(SECRET, b"{}", NOW_NS + (off_s // 2) * 10**9))


def test_the_file_is_read_again_when_it_changes(guard: Guard) -> None:
    token = Token(str(guard.path))
    assert token.value() == SECRET
    guard.write(b"a new secret, a new secret")
    assert token.value() == b"a new secret, a new secret"
    guard.path.unlink()
    with pytest.raises(TokenFileError):
        token.value()


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (SECRET, 0o640, "chmod 600"),
        (SECRET, 0o604, "chmod 600"),
        (b"short", 0o600, "5 bytes"),
        (b"", 0o600, "0 bytes"),
        (b"x" * 5000, 0o600, "16 to"),
    ],
)
def test_an_unfit_token_file_is_refused_with_what_to_do(guard: Guard, content: bytes, mode: int, says: str) -> None:
    guard.write(content, mode)
    with pytest.raises(TokenFileError, match=says):
        read_token(str(guard.path))
    assert refusal(guard, sign(SECRET, b"{}", NOW_NS)) == "unauthenticated"


def test_a_missing_token_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match="No such file"):
        read_token(str(tmp_path / "none"))
    with pytest.raises(TokenFileError, match="cannot be read"):
        read_token(str(tmp_path))


def test_without_a_token_file_no_signature_can_be_right() -> None:
    async def check() -> None:
        gate = Gate(FileThreads(asyncio.get_running_loop()), FixedClock(), None, open_to_all=False)
        with pytest.raises(RequestError, match="no --rpc_token_file"):
            await gate.check(msgspec.json.decode(sign(SECRET, b"{}", NOW_NS), type=Authenticated), REMOTE)

    run(check())


def test_nonces_are_bounded_and_never_forgotten_too_early() -> None:
    nonces = Nonces(window_ms=1000, limit=2)
    nonces.take("a", 0, 0)
    nonces.take("b", 900, 900)
    with pytest.raises(RequestError, match="too many"):
        nonces.take("c", 950, 950)
    nonces.take("c", 1500, 1500)
    with pytest.raises(RequestError, match="already"):
        nonces.take("b", 900, 1500)
    assert len(nonces) == 2


def test_each_refusal_is_logged_once_with_who(caplog: pytest.LogCaptureFixture) -> None:
    refusals = RefusalLog()
    for _ in range(5):
        refusals.add(REMOTE, "listProcesses", RequestError("unauthenticated", "sign it"))
    refusals.add(REMOTE, "fetchTrace", RequestError("unauthenticated", "sign it"))
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 2
    assert "10.0.0.9" in said[0]


def test_a_token_file_that_cannot_be_used_is_said_once_a_minute(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    """Anybody can send something that looks signed."""
    guard.write(SECRET, mode=0o644)

    async def ask_often() -> None:
        gate = Gate(FileThreads(asyncio.get_running_loop()), guard.clock, Token(str(guard.path)), open_to_all=False)
        for _ in range(5):
            with pytest.raises(RequestError, match="cannot use its token file"):
                await gate.check(msgspec.json.decode(sign(SECRET, b"{}", NOW_NS), type=Authenticated), REMOTE)

    run(ask_often())
    assert len([line for line in caplog.messages if "open to other users" in line]) == 1


def refusals_of(*origins: tuple[Origin, int | None]) -> None:
    refusals = RefusalLog()
    for origin, uid in origins:
        refusals.add(origin, "reload", RequestError("forbidden", "no"), uid)


def on(host: str, transport: Transport = Transport.REMOTE) -> Origin:
    return Origin(transport=transport, who=f"{host} port 4", peer=(host, 4), own=("10.0.0.1", 1778))


def test_many_addresses_of_one_caller_give_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """A user has 16 million addresses on loopback, a host of IPv6 2**64."""
    refusals_of(*[(on(f"127.0.0.{number}", Transport.LOOPBACK), 1000) for number in range(1, 9)])
    refusals_of(*[(on(f"127.0.0.{number}", Transport.LOOPBACK), None) for number in range(1, 9)])
    refusals_of(*[(on(f"2001:db8:0:7::{number:x}"), None) for number in range(1, 9)])
    assert len(caplog.messages) == 3
    assert "127.0.0.1 port 4 (uid 1000)" in caplog.messages[0]
    caplog.clear()
    loopback = on("127.0.0.1", Transport.LOOPBACK)
    refusals_of((loopback, 1000), (loopback, 1001), (on("2001:db8::1"), None), (on("2001:db8:0:1::1"), None))
    assert len(caplog.messages) == 4


def test_refusals_of_however_many_hosts_are_few_lines_and_a_number(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    refusals = RefusalLog()
    for number in range(300):
        refusals.add(on(f"10.0.{number // 250}.{number % 250}"), "reload", RequestError("forbidden", "no"))
    assert len(caplog.messages) == 121
    assert caplog.messages[-1] == "rpc: more than 120 refusals in a minute: further ones are only counted"
    now_s = 61.0
    refusals.add(on("10.0.9.9"), "reload", RequestError("forbidden", "no"))
    assert caplog.messages[121] == "rpc: 180 more refusals were not written: at most 120 a minute"
    assert "10.0.9.9" in caplog.messages[122]


def test_repeated_refusals_are_counted_when_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    refusals = RefusalLog(every_s=0.0)
    refusals.add(REMOTE, "f", RequestError("c", "s"))
    refusals.add(REMOTE, "f", RequestError("c", "s"))
    assert len(caplog.records) == 2


@pytest.mark.skipif(not os.path.exists("/proc/self/uid_map"), reason="this kernel has no user namespaces")
def test_in_a_partial_user_namespace_the_overflow_uid_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """There every uid from outside looks like 65534: two users must not be taken for one."""

    async def callers() -> None:
        origin = Origin(transport=Transport.UNIX, who="pid 1 of uid 65534", uid=65534)
        gate = Gate(FileThreads(asyncio.get_running_loop()), FixedClock(), None, open_to_all=False)
        gate._uids_are_whole = True
        assert (await gate.caller(origin, token=None)).uid == 65534
        gate._uids_are_whole = False
        assert (await gate.caller(origin, token=None)).uid is None

    run(callers())
