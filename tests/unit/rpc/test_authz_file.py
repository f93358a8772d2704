"""--rpc_authz: the rules of a file, and everything that is refused in one."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dynolog.model.errors import FlagError
from dynolog.model.role import Role
from dynolog.model.trace_request import Transport
from dynolog.rpc.authz_file import read_policy
from dynolog.rpc.certificate import CertificateNames, names_of
from dynolog.rpc.policy import MAIN_TOKEN, Grant, Identity, Policy, is_in_network

DAEMON_UID = 990


def policy(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "authz.toml"
    path.write_text(text)
    path.chmod(0o600)
    return read_policy(str(path))


def remote(name: str = "", *alternatives: str, token: str | None = None, host: str = "10.1.2.3") -> Identity:
    certificate = CertificateNames(name, alternatives) if name or alternatives else None
    return Identity(transport=Transport.REMOTE, certificate=certificate, token=token, host=host)


def local(uid: int | None, *gids: int) -> Identity:
    return Identity(transport=Transport.UNIX, uid=uid, gids=frozenset(gids))


def grant(rules: Policy, who: Identity) -> Grant:
    return rules.grant(who, DAEMON_UID, open_to_all=False)


def test_the_first_rule_that_means_the_caller_decides(tmp_path: Path) -> None:
    rules = policy(
        tmp_path,
        """
        [[rule]]
        certificate = "ops-old-*"
        role = "none"
        [[rule]]
        certificate = ["ops-*", "spiffe://prod/*"]
        role = "admin"
        [[rule]]
        certificate = "*"
        role = "read"
        """,
    )
    assert grant(rules, remote("ops-old-7")).role is Role.NONE
    assert grant(rules, remote("ops-7")).role is Role.ADMIN
    assert grant(rules, remote("x", "spiffe://prod/tracer")).role is Role.ADMIN
    assert grant(rules, remote("OPS-7")).role is Role.READ
    assert grant(rules, remote()).role is Role.NONE


def test_everything_that_a_rule_names_must_hold(tmp_path: Path) -> None:
    rules = policy(tmp_path, '[[rule]]\ncertificate = "ops-*"\nnetwork = ["10.0.0.0/8", "fd00::/8"]\nrole = "trace"\n')
    assert grant(rules, remote("ops-1")) == Grant(role=Role.TRACE, for_everybody=True, name="certificate ops-1")
    assert grant(rules, remote("ops-1", host="192.168.0.1")).role is Role.NONE
    assert grant(rules, remote("ops-1", host="fd00::7")).role is Role.TRACE


def test_users_and_groups_are_known_by_number_and_name(tmp_path: Path) -> None:
    rules = policy(
        tmp_path,
        '[[rule]]\nuser = ["nobody", "daemon"]\nuid = 4000\nrole = "read"\n'
        '[[rule]]\ngid = 77\ngroup = "daemon"\nrole = "trace"\ntrainers = "all"\n',
    )
    assert grant(rules, local(65534)).role is Role.READ
    assert grant(rules, local(4000)).role is Role.READ
    assert grant(rules, local(5000, 5000, 77)) == Grant(role=Role.TRACE, for_everybody=True)
    assert grant(rules, local(5000, 5000)) == Grant(role=Role.TRACE)


def test_users_that_no_rule_means_get_the_local_role(tmp_path: Path) -> None:
    assert grant(policy(tmp_path, 'local = "read"'), local(5000)).role is Role.READ
    assert grant(policy(tmp_path, 'local = "none"'), local(None)).role is Role.NONE
    assert grant(policy(tmp_path, ""), local(5000)) == Grant(role=Role.TRACE)


def test_root_and_the_daemons_user_cannot_be_locked_out(tmp_path: Path) -> None:
    rules = policy(tmp_path, 'local = "none"\n[[rule]]\nuid = [0, 990]\nrole = "none"\n')
    assert grant(rules, local(0)).role is Role.ADMIN
    assert grant(rules, local(DAEMON_UID)).role is Role.ADMIN


def test_a_token_of_a_rule_is_known_by_its_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("secret of 16 characters " + name)
        (tmp_path / name).chmod(0o600)
    rules = policy(
        tmp_path,
        f'[[rule]]\ntoken_file = "{tmp_path}/a"\nrole = "read"\n[[rule]]\ntoken_file = "{tmp_path}/b"\nrole = "admin"\n',
    )
    assert grant(rules, remote(token=f"{tmp_path}/a")).role is Role.READ
    assert grant(rules, remote(token=f"{tmp_path}/b")).role is Role.ADMIN
    assert grant(rules, remote(token=f"{tmp_path}/gone")).role is Role.NONE
    assert grant(rules, remote(token=MAIN_TOKEN)).role is Role.ADMIN
    assert "secret" not in repr(rules) + grant(rules, remote(token=f"{tmp_path}/a")).name


def test_without_a_file_a_verified_certificate_traces_and_a_local_user_traces_its_own() -> None:
    assert grant(Policy(), remote("any")) == Grant(role=Role.TRACE, for_everybody=True, name="certificate any")
    assert grant(Policy(), local(1000)) == Grant(role=Role.TRACE)
    assert grant(Policy(), remote()).role is Role.NONE
    assert Policy().grant(remote(), DAEMON_UID, open_to_all=True) == Grant(role=Role.TRACE, for_everybody=True)


REFUSED = [
    ("[[rule]\n", "line 1"),
    ('[[rule]]\nrole = "trace"\n', r"authz.toml:1: the rule means nobody"),
    ('local = "trace"\n\n[[rule]]\nuid = 1\nrole = "boss"\n', r"authz.toml:3: Invalid enum value 'boss'"),
    ('[[rule]]\nuid = 1\nrole = "read"\n[[rule]]\ncertifcate = "x"\nrole = "read"\n', "authz.toml:4: .*certifcate"),
    ('[[rules]]\nuid = 1\nrole = "read"\n', "unknown field `rules`"),
    ('[[rule]]\nuid = "root"\nrole = "read"\n', "Expected `int | array`"),
    ('[[rule]]\nuid = -1\nrole = "read"\n', "no user has"),
    ('[[rule]]\nuser = "no such user"\nrole = "read"\n', "there is no user 'no such user' here"),
    ('[[rule]]\ngroup = "no such group"\nrole = "read"\n', "there is no group"),
    ('[[rule]]\nnetwork = "10.0.0.0/8"\nrole = "trace"\n', "a network alone proves nothing"),
    ('[[rule]]\nnetwork = "10.0.0.1/8"\ncertificate = "x"\nrole = "trace"\n', "has host bits set"),
    ('[[rule]]\ncertificate = ""\nrole = "trace"\n', "an empty name matches nothing"),
    ('[[rule]]\ncertificate = "x"\nrole = "trace"\ntrainers = "own"\n', "needs a uid or user"),
    ('[[rule]]\ntoken_file = "/no/such"\nrole = "trace"\n', "token file /no/such cannot be read"),
    ("[[rule]]\nuid = 1\n", "missing required field `role`"),
    ("rule = 1\n", "Expected `array`"),
    ("".join(f'[[rule]]\nuid = {n}\nrole = "read"\n' for n in range(1100)), "too many"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(FlagError, match=sentence):
        policy(tmp_path, text)


def test_a_file_that_others_may_write_is_no_rule(tmp_path: Path) -> None:
    path = tmp_path / "authz.toml"
    path.write_text("")
    path.chmod(0o620)
    with pytest.raises(FlagError, match="chmod go-w"):
        read_policy(str(path))


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """A FIFO without a writer would hold the daemon up."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "none"):
        with pytest.raises(FlagError, match="--rpc_authz: "):
            read_policy(str(path))


TOML = st.text(max_size=200) | st.lists(
    st.sampled_from(
        [
            "[[rule]]",
            'role = "read"',
            'role = "x"',
            "uid = 3",
            "uid = [1, 2]",
            'certificate = "*"',
            "[a]",
            'x."y" = {}',
            'local = "none"',
        ]
    ),
    max_size=12,
).map("\n".join)


@hypothesis_settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TOML)
def test_any_text_is_rules_or_a_sentence(tmp_path: Path, text: str) -> None:
    try:
        rules = policy(tmp_path, text.replace("\r", ""))
    except FlagError as error:
        assert str(error).startswith("--rpc_authz: ")
    else:
        assert grant(rules, remote()).role is Role.NONE


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "authz.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FlagError, match="not UTF-8"):
        read_policy(str(path))


def test_the_names_of_a_certificate() -> None:
    parsed = {
        "subject": ((("organizationName", "x"),), (("commonName", "general"),), (("commonName", "ops-1"),)),
        "subjectAltName": (("DNS", "a.example"), ("URI", "spiffe://x"), ("DirName", "no"), ("IP Address", "10.0.0.1")),
    }
    names = names_of(parsed)
    assert names is not None
    assert names.all == ("ops-1", "a.example", "spiffe://x", "10.0.0.1")
    assert names_of(None) is names_of({}) is None
    assert str(names_of({"subject": ((("organizationName", "x"),),)})) == "without a name"


def test_an_address_that_is_none_is_in_no_network() -> None:
    assert not is_in_network("", ["0.0.0.0/0"])
    assert is_in_network("10.255.0.1", ["10.0.0.0/8"])
