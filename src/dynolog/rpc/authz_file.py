"""Reads --rpc_authz. Everything that cannot be meant is refused with its place: a rule that is silently not there opens or shuts a door."""

import os
import re
import stat
from typing import Literal

import msgspec

from dynolog.model.errors import FlagError
from dynolog.model.role import Role
from dynolog.rpc.policy import AccessRule, Policy
from dynolog.rpc.token import TokenFileError, read_token

FLAG = "rpc_authz"
_MAX_BYTES = 1 << 20
_MAX_RULES = 1024
# Every signed request is tried with each of them.
_MAX_TOKENS = 32
_RoleWord = Literal["none", "read", "trace", "admin"]
_RULE_HEADER = re.compile(r"^\s*\[\[\s*rule\s*\]\]")
_INDEX = re.compile(r"\$\.rule\[(\d+)\]")


class _Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: _RoleWord
    certificate: str | list[str] = []
    token_file: str = ""
    uid: int | list[int] = []
    user: str | list[str] = []
    gid: int | list[int] = []
    group: str | list[str] = []
    network: str | list[str] = []
    trainers: Literal["own", "all"] | None = None


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: list[_Rule] = []
    local: _RoleWord = "trace"


def read_policy(path: str) -> Policy:
    """The rules in a file. Blocks. Raises FlagError with the line and what to write instead."""
    # Needed by a daemon with rules only.
    import tomllib  # noqa: PLC0415

    text = _read(path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FlagError(f"--{FLAG}: {path}: {error}: correct it") from error
    except RecursionError as error:
        raise FlagError(f"--{FLAG}: {path}: it is nested too deeply: a rule is one table") from error
    try:
        file = msgspec.convert(table, type=_File)
    except msgspec.ValidationError as error:
        raise FlagError(
            f"--{FLAG}: {path}{_line(text, str(error))}: {error}: see docs/security.md for what a rule has"
        ) from error
    if len(file.rule) > _MAX_RULES:
        raise FlagError(
            f"--{FLAG}: {path}: {len(file.rule)} rules are too many: at most {_MAX_RULES}; use patterns and groups"
        )
    if sum(bool(rule.token_file) for rule in file.rule) > _MAX_TOKENS:
        raise FlagError(f"--{FLAG}: {path}: more than {_MAX_TOKENS} rules name a token: use certificates for so many")
    rules = []
    for index, rule in enumerate(file.rule):
        place = f"{path}{_line(text, f'$.rule[{index}]')}"
        try:
            rules.append(_resolved(rule, place))
        except (ValueError, TokenFileError) as error:
            raise FlagError(f"--{FLAG}: {place}: {error}") from error
    return Policy(rules=tuple(rules), local=Role[file.local.upper()], is_file=True)


def _read(path: str) -> str:
    try:
        # Not waiting for the other end, should it be a FIFO.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise FlagError(f"--{FLAG}: {path} is not a regular file: name a TOML file")
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise FlagError(
            f"--{FLAG}: {path} cannot be read: {error.strerror or error}: correct the path or its mode"
        ) from error
    if facts.st_mode & 0o022:
        raise FlagError(
            f"--{FLAG}: {path} may be written by other users, who could make themselves admin: chmod go-w {path}"
        )
    if facts.st_uid not in (0, os.geteuid()):
        raise FlagError(f"--{FLAG}: {path} belongs to uid {facts.st_uid}: chown it to root or to uid {os.geteuid()}")
    if len(data) > _MAX_BYTES:
        raise FlagError(f"--{FLAG}: {path} is larger than {_MAX_BYTES >> 20} MB: is it the right file?")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FlagError(f"--{FLAG}: {path} is not UTF-8 text (byte {error.start})") from error


def _line(text: str, message: str) -> str:
    """`:7`, the line of the rule that an error is about."""
    if not (found := _INDEX.search(message)):
        return ""
    headers = [number for number, line in enumerate(text.splitlines(), 1) if _RULE_HEADER.match(line)]
    index = int(found[1])
    return f":{headers[index]}" if index < len(headers) else ""


def _resolved(rule: _Rule, place: str) -> AccessRule:
    """Raises ValueError with a sentence."""
    uids = _ids(rule.uid, rule.user, "user") if rule.uid != [] or rule.user != [] else None
    gids = _ids(rule.gid, rule.group, "group") if rule.gid != [] or rule.group != [] else None
    patterns, networks = _list(rule.certificate), _list(rule.network)
    by_name = bool(patterns or rule.token_file)
    role = Role[rule.role.upper()]
    if "" in patterns or "" in networks:
        raise ValueError("an empty name matches nothing: leave it out, or write a pattern such as ops-*")
    if uids is None and gids is None and not by_name:
        if not networks:
            raise ValueError(
                "the rule means nobody: it needs certificate, token_file, uid, user, gid, group or network"
            )
        if role > Role.READ:
            raise ValueError(
                f'a network alone proves nothing, so it gives at most role = "read": add certificate or token_file for "{rule.role}"'
            )
    if rule.token_file:
        read_token(rule.token_file)
    if by_name and rule.trainers == "own" and uids is None:
        raise ValueError(
            'trainers = "own" needs a uid or user: whoever comes with a certificate or token has no trainers here'
        )
    for_everybody = role is Role.ADMIN or (by_name if rule.trainers is None else rule.trainers == "all")
    return AccessRule(
        role=role,
        place=place,
        for_everybody=for_everybody,
        patterns=patterns,
        token_file=rule.token_file,
        uids=uids,
        gids=gids,
        networks=tuple(map(_network, networks)),
    )


def _list(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _ids(numbers: int | list[int], names: str | list[str], what: str) -> frozenset[int]:
    ids = {numbers} if isinstance(numbers, int) else set(numbers)
    if any(not 0 <= number < 1 << 32 for number in ids):
        raise ValueError(f"{sorted(ids)} holds a number that no {what} has")
    return frozenset(ids | {_id_of(name, what) for name in _list(names)})


def _id_of(name: str, what: str) -> int:
    # The name services load libraries: only for rules with names.
    import grp  # noqa: PLC0415
    import pwd  # noqa: PLC0415

    try:
        return pwd.getpwnam(name).pw_uid if what == "user" else grp.getgrnam(name).gr_gid
    except KeyError:
        raise ValueError(f"there is no {what} {name!r} here: correct it, or give its number") from None


def _network(text: str) -> str:
    import ipaddress  # noqa: PLC0415 - only for rules with networks

    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise ValueError(f"network {text!r}: {error}: write it as 10.0.0.0/8 or fd00::/8") from error
