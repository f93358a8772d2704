"""Every function for every kind of caller: what it may, by the role it has."""

import asyncio
import inspect
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.model.clock import SystemClock
from dynolog.model.reload import ReloadReport
from dynolog.model.role import Role
from dynolog.model.trace_request import Transport
from dynolog.rpc.answers import Fetch
from dynolog.rpc.auth import Gate, Token
from dynolog.rpc.authz_file import read_policy
from dynolog.rpc.certificate import CertificateNames
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.messages import Request
from dynolog.rpc.methods import Methods
from dynolog.rpc.origin import Origin
from dynolog.rpc.requests import FUNCTIONS
from dynolog.rpc.roles import ROLES, needed
from dynolog.rpc.token import sign
from fakes.services import FakeServices

RULES = """
local = "none"
[[rule]]
role = "read"
certificate = "reader-*"
[[rule]]
role = "read"
uid = 2001
[[rule]]
role = "trace"
certificate = "tracer-*"
[[rule]]
role = "trace"
uid = 2002
[[rule]]
role = "admin"
certificate = "admin-*"
[[rule]]
role = "admin"
uid = 2003
"""
ARGUMENTS: dict[str, dict[str, Any]] = {
    "setKinetOnDemandRequest": {"config": ""},
    "fetchTrace": {"capture_id": "c1"},
    "waitTrace": {"request_id": "r1"},
}
WORDS = {Role.NONE: "nobody", Role.READ: "reader", Role.TRACE: "tracer", Role.ADMIN: "admin"}
ROLE_UIDS = {Role.NONE: 2000, Role.READ: 2001, Role.TRACE: 2002, Role.ADMIN: 2003}
FULL = [*((function, {}) for function in FUNCTIONS), ("getStatus", {"verbose": True})]


class FakeReload:
    async def reload(self) -> ReloadReport:
        return ReloadReport(changed=("--x=1",))


class Asked:
    """Methods on fakes behind the rules above, with a token for each role."""

    def __init__(self, directory: Path, rules: str = RULES) -> None:
        self.loop = asyncio.new_event_loop()
        self.fakes = FakeServices()
        self.directory = directory
        for role, word in (("reader", "read"), ("tracer", "trace"), ("admin", "admin")):
            (directory / role).write_text(f"the secret of every {role}")
            (directory / role).chmod(0o600)
            rules += f'[[rule]]\nrole = "{word}"\ntoken_file = "{directory}/{role}"\n'
        (directory / "authz.toml").write_text(rules)
        (directory / "authz.toml").chmod(0o600)
        self.gate = Gate(FileThreads(self.loop), SystemClock(), None, open_to_all=False)
        self.gate._uids_are_whole = True
        self.gate.follow(read_policy(str(directory / "authz.toml")))
        services = msgspec.structs.replace(self.fakes.services, reload=FakeReload())
        self.methods = Methods(services, self.gate, SystemClock())

    def ask(self, body: bytes, origin: Origin) -> str:
        """`ok`, or the code of the refusal."""
        answer = self.methods.answer(body, lambda: origin)
        if inspect.iscoroutine(answer):
            answer = self.loop.run_until_complete(answer)
        if isinstance(answer, Fetch):
            os.close(answer.trace.fd)
            return "ok"
        assert isinstance(answer, bytes)
        reply = json.loads(answer)
        # What a service refuses was let through.
        return str(reply["code"]) if reply.get("code") in ("forbidden", "unauthenticated") else "ok"


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    one = Asked(tmp_path)
    yield one
    one.loop.close()


def body_of(function: str, more: dict[str, Any]) -> bytes:
    return json.dumps({"fn": function, **ARGUMENTS.get(function, {}), **more}).encode()


def test_every_function_says_which_role_it_needs() -> None:
    assert set(ROLES) == set(Request.__args__)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(("function", "more"), FULL)
@pytest.mark.parametrize("way", ["unix", "certificate", "token"])
def test_a_caller_may_what_its_role_allows_and_nothing_else(
    asked: Asked, role: Role, function: str, more: dict[str, Any], way: str
) -> None:
    body = body_of(function, more)
    remote = Origin(transport=Transport.REMOTE, who="10.0.0.9 port 4", peer=("10.0.0.9", 4), own=("10.0.0.1", 1778))
    match way:
        case "unix":
            uid = ROLE_UIDS[role]
            origin = Origin(transport=Transport.UNIX, who=f"pid 9 of uid {uid}", uid=uid)
        case "certificate":
            origin = msgspec.structs.replace(remote, certificate=CertificateNames(f"{WORDS[role]}-1"))
        case _:
            origin = remote
            if role is not Role.NONE:
                body = sign((asked.directory / WORDS[role]).read_bytes(), body, SystemClock().wall_ns())
    need = needed(msgspec.convert({"fn": function, **ARGUMENTS.get(function, {}), **more}, type=Request))
    code = asked.ask(body, origin)
    if role >= need:
        assert code == "ok"
    else:
        assert code == ("unauthenticated" if way == "token" and role is Role.NONE else "forbidden")


@pytest.mark.parametrize(("function", "more"), FULL)
def test_without_rules_a_local_user_does_all_but_reload_and_root_all(
    tmp_path: Path, function: str, more: dict[str, Any]
) -> None:
    asked = Asked(tmp_path)
    asked.gate.follow(type(asked.gate._policy)())
    user = Origin(transport=Transport.UNIX, who="pid 9 of uid 5000", uid=5000)
    root = Origin(transport=Transport.UNIX, who="pid 9 of uid 0", uid=0)
    assert asked.ask(body_of(function, more), user) == ("forbidden" if function == "reload" else "ok")
    assert asked.ask(body_of(function, more), root) == "ok"
    asked.loop.close()


def test_a_token_lives_as_long_as_its_rule(asked: Asked) -> None:
    """A reload takes a rule away, and with it what its token opened."""
    body = sign((asked.directory / "admin").read_bytes(), body_of("reload", {}), SystemClock().wall_ns())
    again = sign((asked.directory / "admin").read_bytes(), body_of("reload", {}), SystemClock().wall_ns())
    remote = Origin(transport=Transport.REMOTE, who="10.0.0.9 port 4", peer=("10.0.0.9", 4), own=("10.0.0.1", 1778))
    assert asked.ask(body, remote) == "ok"
    asked.gate.follow(type(asked.gate._policy)(is_file=True))
    assert asked.ask(again, remote) == "unauthenticated"


def test_a_token_of_a_rule_whose_file_is_gone_does_not_keep_the_others_out(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    (asked.directory / "reader").unlink()
    body = sign((asked.directory / "admin").read_bytes(), body_of("reload", {}), SystemClock().wall_ns())
    remote = Origin(transport=Transport.REMOTE, who="10.0.0.9 port 4", peer=("10.0.0.9", 4), own=("10.0.0.1", 1778))
    assert asked.ask(body, remote) == "ok"
    assert "reader cannot be read" in caplog.text


def test_a_refusal_is_logged_once_with_who(asked: Asked, caplog: pytest.LogCaptureFixture) -> None:
    origin = Origin(
        transport=Transport.REMOTE,
        who="10.0.0.9 port 4",
        peer=("10.0.0.9", 4),
        own=("10.0.0.1", 1778),
        certificate=CertificateNames("reader-\n7"),
    )
    for _ in range(3):
        assert asked.ask(body_of("reload", {}), origin) == "forbidden"
    (line,) = [line for line in caplog.messages if line.startswith("rpc: refused reload")]
    assert "10.0.0.9 port 4" in line
    assert "needs the role admin" in line


def test_the_main_token_is_admin_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "main").write_text("the secret of the daemon")
    (tmp_path / "main").chmod(0o600)
    asked = Asked(tmp_path)
    asked.gate._token = Token(str(tmp_path / "main"))
    asked.gate.follow(read_policy(str(tmp_path / "authz.toml")))
    body = sign(b"the secret of the daemon", body_of("reload", {}), SystemClock().wall_ns())
    remote = Origin(transport=Transport.REMOTE, who="10.0.0.9 port 4", peer=("10.0.0.9", 4), own=("10.0.0.1", 1778))
    assert asked.ask(body, remote) == "ok"
    asked.loop.close()
