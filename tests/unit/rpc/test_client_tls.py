"""What dyno says of TLS that does not work, and what to do; on one daemon and on many."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynolog.cli.main import main
from dynolog.cli.target_words import command_for
from dynolog.fleet.fan_out import FanOutOptions, Outcome, ask_all
from dynolog.fleet.targets import FleetTarget
from dynolog.model.errors import DynologError, RequestError
from dynolog.rpc.client import CannotReach, Target, call
from dynolog.rpc.client_tls import ClientTls, ClientTlsError, client_tls
from dynolog.rpc.messages import CatalogueReply, GetStatus, ListMetrics, StatusReply
from fakes.certificates import Authority
from fakes.framed_server import framed_server, original_daemon
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


def why(port: int, tls: ClientTls | None, host: str = "127.0.0.1") -> str:
    """How one call fails; what a fleet says of the same daemon must say the same."""
    with pytest.raises(DynologError) as caught:
        call(Target(hostname=host, port=port, tls=tls, timeout_s=30), GetStatus(), StatusReply)
    (answer,) = ask_all([FleetTarget(host=host, port=port)], GetStatus(), FanOutOptions(timeout_s=30, tls=tls))
    if isinstance(caught.value, RequestError):
        assert (answer.outcome, answer.error) == (Outcome.REFUSED, str(caught.value))
    else:
        assert isinstance(caught.value, CannotReach)
        assert answer.outcome is Outcome.UNREACHABLE
        assert (
            answer.error.partition(" (")[0]
            == str(caught.value).replace(f"{host}:{port}", "the daemon").partition(" (")[0]
        )
    return str(caught.value)


def test_what_a_daemon_shows_must_be_signed_valid_and_for_its_name(authority: Authority, stranger: Authority) -> None:
    ops = authority.client("ops-1")
    with running_daemon(FakeServices(), **authority.flags()) as port:
        assert "not signed by the authority in --tls-ca" in why(port, stranger.client("ops-1"))
        other = ClientTls(authority=ops.authority, certificate=ops.certificate, key=ops.key, server_name="gpu7")
        assert "is not for gpu7" in why(port, other)
    flags = authority.flags()
    authority.issue("server", expired=True)
    with running_daemon(FakeServices(), **flags) as port:
        assert "has expired: renew it there" in why(port, ops)


def test_what_dyno_shows_must_be_signed_and_valid(authority: Authority, stranger: Authority) -> None:
    foreign = stranger.issue("foreign", "ops-1")
    expired = authority.issue("expired", "ops-1", expired=True)
    with running_daemon(FakeServices(), **authority.flags()) as port:
        assert "asks for a client certificate: give --tls-cert" in why(port, authority.client())
        assert "does not know the authority that signed --tls-cert" in why(
            port, ClientTls(authority=authority.file, certificate=foreign[0], key=foreign[1])
        )
        assert "in --tls-cert has expired" in why(
            port, ClientTls(authority=authority.file, certificate=expired[0], key=expired[1])
        )


def test_one_side_without_tls_is_recognised(authority: Authority) -> None:
    with running_daemon(FakeServices(), **authority.flags()) as port:
        assert "give `dyno --tls-ca FILE`" in why(port, None)
    with running_daemon(FakeServices()) as port:
        assert "speaks no TLS: leave --tls-ca out" in why(port, authority.client())


def test_an_original_daemon_is_none_with_tls(authority: Authority) -> None:
    """It closes without a word: that may mean anything, so it is said as it is."""
    with framed_server(original_daemon([])) as server, pytest.raises(CannotReach, match="does not answer in TLS"):
        call(
            Target(hostname="127.0.0.1", port=server.port, tls=authority.client(), timeout_s=2),
            GetStatus(),
            StatusReply,
        )


def test_addresses_and_names_are_verified(authority: Authority) -> None:
    """A certificate for an IP address is good for that address, one for a name for that name."""
    ops = authority.client("ops-1")
    with running_daemon(FakeServices(), **authority.flags()) as port:
        for host in ("127.0.0.1", "localhost"):
            assert call(Target(hostname=host, port=port, tls=ops), GetStatus(), StatusReply).status == 1
    flags = authority.flags()
    authority.issue("server", "gpu7.example")
    with running_daemon(FakeServices(), **flags) as port:
        assert "is not for 127.0.0.1" in why(port, ops)
        tunnel = ClientTls(
            authority=ops.authority, certificate=ops.certificate, key=ops.key, server_name="gpu7.example"
        )
        assert call(Target(hostname="127.0.0.1", port=port, tls=tunnel), GetStatus(), StatusReply).status == 1
    authority.issue("server")


def test_many_hosts_over_tls_and_a_large_reply(authority: Authority) -> None:
    fakes = FakeServices()
    with running_daemon(fakes, **authority.flags()) as one, running_daemon(fakes, **authority.flags()) as two:
        targets = [FleetTarget(host="127.0.0.1", port=port) for port in (one, two) * 20]
        options = FanOutOptions(timeout_s=60, tls=authority.client("ops-1"))
        answers = ask_all(targets, ListMetrics(), options)
    assert [answer.error for answer in answers] == [""] * 40
    assert {len(reply.metrics) for answer in answers if (reply := answer.decode(CatalogueReply))} == {2}


def test_options_that_do_not_go_together_say_which_is_missing(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("ops-2", "ops-2")
    other_key = authority.issue("ops-3", "ops-3")[1]
    assert client_tls(authority="") is None
    for options, sentence in (
        ({"authority": "", "certificate": certificate}, "--tls-cert needs --tls-ca"),
        ({"authority": "", "key": key}, "--tls-key needs --tls-ca"),
        ({"authority": "", "server_name": "x"}, "--tls-server-name needs --tls-ca"),
        ({"authority": authority.file, "key": key}, "--tls-key needs --tls-cert"),
        ({"authority": "/none"}, "--tls-ca /none cannot be read"),
        ({"authority": key}, "holds no certificate"),
        ({"authority": authority.file, "certificate": "/none", "key": key}, "--tls-cert /none cannot be read"),
        ({"authority": authority.file, "certificate": certificate, "key": "/none"}, "--tls-key /none cannot be read"),
        ({"authority": authority.file, "certificate": certificate, "key": other_key}, "is not the key of --tls-cert"),
    ):
        with pytest.raises(ClientTlsError, match=sentence):
            made: Any = client_tls(**options)
            made.context()


def test_a_directory_stands_for_the_three_files(authority: Authority) -> None:
    directory = str(authority.directory)
    assert client_tls(authority="", directory=directory) == ClientTls(authority=authority.file)
    authority.issue("client", "ops-1")
    assert client_tls(authority="", directory=directory) == ClientTls(
        authority=authority.file,
        certificate=os.path.join(directory, "client.crt"),
        key=os.path.join(directory, "client.key"),
    )


@pytest.fixture
def ports(authority: Authority) -> Callable[[], Any]:
    return lambda: running_daemon(FakeServices(), **authority.flags())


def test_the_options_work_before_and_after_the_subcommand_and_from_the_environment(
    authority: Authority, ports: Callable[[], Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = authority.issue("ops-4", "ops-4")
    tls = ["--tls-ca", authority.file, "--tls-cert", certificate, "--tls-key", key]
    with ports() as port:
        where = ["--port", str(port)]
        assert main([*where, *tls, "status"]) == 0
        assert main([*where, "status", *tls]) == 0
        assert main([*where, "status"]) == 1
        monkeypatch.setenv("DYNO_TLS_CA", authority.file)
        monkeypatch.setenv("DYNO_TLS_CERT", certificate)
        monkeypatch.setenv("DYNO_TLS_KEY", key)
        assert main([*where, "status"]) == 0
        assert main([*where, "--tls-ca", "/none", "status"]) == 2
    assert "--tls-ca /none cannot be read" in capsys.readouterr().err


def test_a_command_to_type_again_keeps_the_options() -> None:
    tls = ClientTls(authority="ca.crt", certificate="me.crt", key="me.key", server_name="gpu 7")
    assert (
        command_for(Target(hostname="h", tls=tls), "ps")
        == "dyno --hostname h --tls-ca ca.crt --tls-cert me.crt --tls-key me.key --tls-server-name 'gpu 7' ps"
    )
    assert command_for(Target(unix="/s", tls=tls), "ps") == "dyno --unix /s ps"
