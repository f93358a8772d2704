"""Who may do what: the rules of --rpc_authz, and what holds without them."""

import fnmatch
from collections.abc import Sequence

import msgspec

from dynolog.model.role import Role
from dynolog.model.trace_request import Transport
from dynolog.rpc.certificate import CertificateNames

# The token of --rpc_token_file; that of a rule is called by its file.
MAIN_TOKEN = ""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a caller: `uid` and `gids` only where the kernel tells, `certificate` only when it was verified, `token` only when a
    request was signed with one (MAIN_TOKEN or the file of a rule's), `host` unless it came by the unix socket.
    """

    transport: Transport
    uid: int | None = None
    gids: frozenset[int] = frozenset()
    certificate: CertificateNames | None = None
    token: str | None = None
    host: str = ""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may do. `for_everybody`: with the trainers of all users. `name`: what proved it, for the log ("" for a user by uid)."""

    role: Role
    for_everybody: bool = False
    name: str = ""


class AccessRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, ready to be asked. Everything that is given must hold; `place` says where it stands in its file."""

    role: Role
    place: str
    for_everybody: bool = False
    patterns: tuple[str, ...] = ()
    token_file: str = ""
    uids: frozenset[int] | None = None
    gids: frozenset[int] | None = None
    networks: tuple[str, ...] = ()

    def means(self, who: Identity) -> bool:
        """Whether it is about this caller."""
        if self.uids is not None and who.uid not in self.uids:
            return False
        if self.gids is not None and not self.gids & who.gids:
            return False
        if self.patterns and not _any_matches(self.patterns, who.certificate):
            return False
        if self.token_file and who.token != self.token_file:
            return False
        return not self.networks or is_in_network(who.host, self.networks)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The first rule that means a caller decides. `local` is the role of users of this machine that no rule means, with their own trainers;
    other callers without a rule have none. `is_file`: it comes from a file, so a certificate alone proves nothing.
    """

    rules: tuple[AccessRule, ...] = ()
    local: Role = Role.TRACE
    is_file: bool = False

    @property
    def knows_strangers(self) -> bool:
        """Whether a rule can mean a caller of another machine."""
        return any(rule.uids is None and rule.gids is None for rule in self.rules)

    def grant(self, who: Identity, daemon_uid: int, open_to_all: bool) -> Grant:
        """What this caller may do. Root and the daemon's own user may do everything: they could stop it, too."""
        is_local = who.transport is not Transport.REMOTE
        name = _name(who)
        if who.token == MAIN_TOKEN:
            return Grant(role=Role.ADMIN, for_everybody=True, name=name)
        if is_local and who.uid is not None and who.uid in (0, daemon_uid):
            return Grant(role=Role.ADMIN, name=name)
        for rule in self.rules:
            if rule.means(who):
                return Grant(role=rule.role, for_everybody=rule.for_everybody, name=name)
        if who.certificate is not None and not self.is_file:
            return Grant(role=Role.TRACE, for_everybody=True, name=name)
        if is_local:
            return Grant(role=self.local, name=name)
        # With the door open to all, another machine counts as one that has proved itself, but for the daemon's own affairs.
        return Grant(role=Role.TRACE, for_everybody=True) if open_to_all else Grant(role=Role.NONE, name=name)


def _name(who: Identity) -> str:
    proofs = []
    if who.certificate is not None:
        proofs.append(f"certificate {who.certificate}")
    if who.token == MAIN_TOKEN:
        proofs.append("the token of --rpc_token_file")
    elif who.token is not None:
        proofs.append(f"the token {who.token}")
    return " and ".join(proofs)


def _any_matches(patterns: Sequence[str], certificate: CertificateNames | None) -> bool:
    """Shell patterns; upper and lower case differ."""
    if certificate is None:
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for name in certificate.all for pattern in patterns)


def is_in_network(host: str, networks: Sequence[str]) -> bool:
    """Whether an address is in one of the networks (`10.0.0.0/8`)."""
    # Only for rules with networks.
    import ipaddress  # noqa: PLC0415

    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(network) for network in networks)
