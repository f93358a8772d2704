"""docs/recipes/tls.md: its commands as they stand, with a real openssl, on a real daemon."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from integration.harness import REPOSITORY, Daemon, running_daemon, tool

PAGE = REPOSITORY / "docs" / "recipes" / "tls.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Machine:
    """A directory in which the page is followed, block by block; `dyno` there talks to the daemon of the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.blocks = BLOCK.findall(PAGE.read_text())
        (directory / "bin").mkdir()
        self.point_to(0)

    def point_to(self, port: int) -> None:
        for name, module, words in (
            ("dyno", "dynolog.cli.main", f"--hostname localhost --port {port}"),
            ("dynolog", "dynolog.daemon.main", ""),
        ):
            script = self.directory / "bin" / name
            script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} {words} "$@"\n')
            script.chmod(0o755)

    def follow(self, *numbers: int) -> str:
        """What the blocks print; each must end well, and all of its commands."""
        script = "".join(self.blocks[number] for number in numbers)
        env = {**os.environ, "PATH": f"{self.directory}/bin:{os.environ['PATH']}"}
        done = subprocess.run(
            [tool("bash"), "-euc", script],
            cwd=self.directory,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def dyno(self, who: str, *words: str) -> subprocess.CompletedProcess[str]:
        tls = ["--tls-ca", "ca.crt", "--tls-cert", f"{who}.crt", "--tls-key", f"{who}.key"]
        return subprocess.run(
            ["bin/dyno", *tls, *words], cwd=self.directory, capture_output=True, text=True, check=False, timeout=60
        )


def port_of(daemon: Daemon) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+)", daemon.wait_for("RPC listens on")[0])
    assert found is not None
    return int(found[1])


def test_the_commands_of_the_page_make_certificates_that_serve_and_one_that_is_revoked(tmp_path: Path) -> None:
    tool("openssl")
    machine = Machine(tmp_path)
    assert len(machine.blocks) == 6
    printed = machine.follow(0, 1, 2, 3)
    assert printed.endswith("the flags are fine\n")
    assert all(not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) for path in tmp_path.glob("*.key"))
    with running_daemon(tmp_path / "d", f"--flagfile={tmp_path}/dynolog.flags") as daemon:
        machine.point_to(port_of(daemon))
        printed = machine.follow(4)
        assert 'response = {"status":1}' in printed
        assert "the rules of --rpc_authz" in printed
        (line,) = daemon.wait_for('audit: {"fn":"reload"')
        assert '"proved_by":"certificate ops-alice"' in line
    machine.follow(5)
    with running_daemon(tmp_path / "d", f"--flagfile={tmp_path}/dynolog.flags") as daemon:
        machine.point_to(port_of(daemon))
        assert machine.dyno("ops-alice", "status").returncode == 0
        revoked = machine.dyno("dev-bob", "status")
        assert revoked.returncode == 3
        assert "was revoked, says" in revoked.stderr
        daemon.wait_for("its certificate was revoked")


def test_the_tunnel_of_the_page_checks_another_name(tmp_path: Path) -> None:
    tool("openssl")
    machine = Machine(tmp_path)
    machine.follow(0, 1, 2, 3)
    with running_daemon(tmp_path / "d", f"--flagfile={tmp_path}/dynolog.flags") as daemon:
        machine.point_to(port_of(daemon))
        assert machine.dyno("ops-alice", "status", "--tls-server-name", "gpu001").returncode == 0
        wrong = machine.dyno("ops-alice", "status", "--tls-server-name", "gpu002")
        assert wrong.returncode == 3
        assert "is not for gpu002" in wrong.stderr


@pytest.mark.parametrize("number", range(6))
def test_each_block_can_be_typed_into_any_shell(tmp_path: Path, number: int) -> None:
    """POSIX syntax: nothing of bash is needed."""
    subprocess.run(["sh", "-n", "-c", Machine(tmp_path).blocks[number]], check=True)
