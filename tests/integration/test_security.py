"""The daemon and dyno as processes: TLS with certificates that change, roles of users and certificates, reload, audit."""

import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetStatus, StatusReply
from fakes.certificates import Authority
from integration.harness import Daemon, eventually, needs_root, running_daemon, tool

NOBODY = 65534


def port_of(daemon: Daemon) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+)", daemon.wait_for("RPC listens on")[0])
    assert found is not None
    return int(found[1])


def flags_of(authority: Authority) -> list[str]:
    return [f"--{name}={value}" for name, value in authority.flags().items()]


def maps(daemon: Daemon) -> str:
    return Path(f"/proc/{daemon.pid}/maps").read_text()


# Everything is loaded before the identity changes: another user may not be able to read this checkout.
AS_ANOTHER_USER = """
import json, os, ssl, sys
from dynolog.rpc.client import Target, call_raw
from dynolog.rpc.client_tls import ClientTls
"".encode("idna")
uid, groups, where, tls, functions = json.loads(sys.argv[1])
os.setgroups(groups)
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
target = Target(**where, tls=ClientTls(**tls) if tls else None, timeout_s=60)
print(*[json.loads(call_raw(target, {"fn": function}).text).get("code", "ok") for function in functions])
"""


def codes_as(
    uid: int, where: dict[str, object], groups: tuple[int, ...] = (), tls: dict[str, str] | None = None
) -> list[str]:
    """`ok`, or the code of the refusal, for a function of each role from none to admin."""
    functions = ("getStatus", "getMetrics", "dcgmProfResume", "reload")
    argument = json.dumps([uid, groups, where, tls, functions])
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER_USER, argument], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Where every user may go, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="dynolog-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


def test_a_daemon_without_tls_does_without_openssl(tmp_path: Path, authority: Authority) -> None:
    """The memory budget; with TLS it is loaded, though asyncio was imported without it."""
    with running_daemon(tmp_path / "plain") as daemon:
        assert daemon.dyno("status").returncode == 0
        assert "libssl" not in maps(daemon)
        assert "/_ssl." not in maps(daemon)
    with running_daemon(tmp_path / "tls", *flags_of(authority)) as daemon:
        target = Target(hostname="127.0.0.1", port=port_of(daemon), tls=authority.client("ops-1"))
        assert call(target, GetStatus(), StatusReply).status == 1
        assert "_ssl." in maps(daemon)


def test_certificates_change_while_clients_come_and_nobody_is_turned_away(tmp_path: Path, authority: Authority) -> None:
    """Every call works, before, between and after three changes, one of them to a file that cannot be used."""
    with running_daemon(tmp_path / "d", *flags_of(authority)) as daemon:
        target = Target(hostname="127.0.0.1", port=port_of(daemon), tls=authority.client("ops-1"), timeout_s=60)
        answers: list[object] = []
        over = threading.Event()

        def ask_and_ask() -> None:
            while not over.is_set():
                try:
                    answers.append(call(target, GetStatus(), StatusReply).status)
                except Exception as error:  # the test's result
                    answers.append(error)

        threads = [threading.Thread(target=ask_and_ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            authority.issue("server")
            daemon.wait_for("has changed and is in use", timeout_s=60)
            (authority.directory / "server.crt").write_text("nothing")
            daemon.wait_for("the certificate from before stays in use", timeout_s=60)
            authority.issue("server")
            daemon.wait_for("has changed and is in use", count=2, timeout_s=60)
            seen = len(answers)
            eventually(lambda: len(answers) > seen + 10)
        finally:
            over.set()
            for thread in threads:
                thread.join(60)
        assert set(answers) == {1}


def test_a_renegotiation_is_refused(tmp_path: Path, authority: Authority) -> None:
    """TLS 1.2 lets a client ask for handshakes again and again, each at the daemon's cost."""
    certificate, key = authority.issue("ops-1", "ops-1")
    with running_daemon(tmp_path / "d", *flags_of(authority)) as daemon:
        port = port_of(daemon)
        words = ["s_client", "-tls1_2", "-connect", f"127.0.0.1:{port}", "-cert", certificate, "-key", key]
        with subprocess.Popen(
            [tool("openssl"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as client:
            assert client.stdin is not None
            client.stdin.write("R\n")
            client.stdin.flush()
            printed, _ = client.communicate(timeout=60)
        assert "no renegotiation" in printed.lower()
        target = Target(hostname="127.0.0.1", port=port, tls=authority.client("ops-2"))
        assert call(target, GetStatus(), StatusReply).status == 1


def test_reload_says_what_changed_what_waits_and_what_is_wrong(tmp_path: Path) -> None:
    flagfile, rules = tmp_path / "flags", tmp_path / "authz.toml"
    rules.write_text("")
    rules.chmod(0o600)
    flagfile.write_text(f"--reporting_interval_s=60\n--rpc_authz={rules}\n")
    with running_daemon(tmp_path / "d", f"--flagfile={flagfile}") as daemon:
        flagfile.write_text(f"--reporting_interval_s=30\n--rpc_authz={rules}\n--rpc_max_connections=7\n")
        rules.write_text('[[rule]]\nrole = "boss"\nuid = 1\n')
        done = daemon.dyno("reload")
        assert done.returncode == 1
        assert done.stdout.splitlines()[1:] == [
            "now in effect: --kernel_monitor_reporting_interval_s=30.0",
            "at the next start: --rpc_max_connections",
        ]
        assert "authz.toml:1: Invalid enum value 'boss'" in done.stdout
        rules.write_text('[[rule]]\nrole = "read"\nuid = 1\n')
        assert daemon.ask("reload")["changed"] == ["the rules of --rpc_authz"]
        flagfile.write_text("--no_such_flag_at_all=x\n--reporting_interval_s=nothing\n")
        done = daemon.dyno("reload")
        assert done.returncode == 1
        assert "flags not reloaded" in done.stdout
        daemon.wait_for('audit: {"fn":"reload"', count=3)


@needs_root
@pytest.mark.root
def test_users_groups_and_certificates_get_the_roles_of_the_rules(open_directory: Path) -> None:
    authority = Authority(open_directory / "tls")
    rules = open_directory / "authz.toml"
    rules.write_text(
        'local = "none"\n'
        '[[rule]]\nrole = "admin"\ncertificate = "ops-*"\n'
        '[[rule]]\nrole = "read"\ncertificate = "dev-*"\n'
        f'[[rule]]\nrole = "trace"\ngid = 4321\n[[rule]]\nrole = "read"\nuid = {NOBODY - 1}\n'
    )
    rules.chmod(0o600)

    def certificate(name: str) -> dict[str, str]:
        files = authority.issue(name, name, common_name=name)
        for file in (authority.file, *files):
            Path(file).chmod(0o644)
        return {"authority": authority.file, "certificate": files[0], "key": files[1]}

    with running_daemon(open_directory / "d", f"--rpc_authz={rules}", *flags_of(authority)) as daemon:
        unix: dict[str, object] = {"unix": str(daemon.unix)}
        tcp: dict[str, object] = {"hostname": "127.0.0.1", "port": port_of(daemon)}
        assert codes_as(NOBODY, unix) == ["ok", "forbidden", "forbidden", "forbidden"]
        assert codes_as(NOBODY - 1, unix) == ["ok", "ok", "forbidden", "forbidden"]
        assert codes_as(NOBODY, unix, groups=(4321,)) == ["ok", "ok", "ok", "forbidden"]
        assert codes_as(NOBODY, tcp, tls=certificate("dev-1")) == ["ok", "ok", "forbidden", "forbidden"]
        assert codes_as(NOBODY, tcp, tls=certificate("other")) == ["ok", "forbidden", "forbidden", "forbidden"]
        assert codes_as(NOBODY, tcp, tls=certificate("ops-1")) == ["ok", "ok", "ok", "ok"]
        assert codes_as(0, unix) == ["ok", "ok", "ok", "ok"]
        (line,) = [line for line in daemon.wait_for('"proved_by":"certificate ops-1"') if '"fn":"reload"' in line]
        assert f'"uid":{NOBODY}' in line
        assert '"outcome":"ok"' in line


def test_check_looks_at_certificates_and_rules(tmp_path: Path, authority: Authority) -> None:
    rules = tmp_path / "authz.toml"
    rules.write_text('[[rule]]\nrole = "trace"\n')
    rules.chmod(0o600)
    for flags, sentence in (
        ([f"--rpc_authz={rules}"], "authz.toml:1: the rule means nobody"),
        ([f"--rpc_tls_cert={tmp_path}/none", f"--rpc_tls_key={tmp_path}/none"], "cannot be read"),
        ([f"--certs_dir={tmp_path}"], "server.crt cannot be read"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "dynolog.daemon.main", "--check", *flags],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert sentence in done.stderr
    fine = [sys.executable, "-m", "dynolog.daemon.main", "--check", f"--certs_dir={authority.directory}"]
    authority.issue("server")
    assert subprocess.run(fine, capture_output=True, text=True, check=True, timeout=60).stdout == "the flags are fine\n"
