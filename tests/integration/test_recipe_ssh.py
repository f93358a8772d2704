"""docs/recipes/ssh: daemons on bare hosts over a real sshd, each host a network namespace; from start to fetched traces to stop."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.net_hosts import NetHosts, net_hosts
from integration.harness import REPOSITORY, Process, eventually, needs_root, tool

pytestmark = [pytest.mark.root, needs_root]

EACH_HOST = REPOSITORY / "docs" / "recipes" / "ssh" / "each_host.sh"
TRAINERS = REPOSITORY / "bench" / "trainers.py"
COUNT = 3
WITHOUT_SSHD = 2


class Hosts:
    """Two hosts with an sshd, and one without; a home directory each, and a key that opens them."""

    def __init__(self, directory: Path, net: NetHosts) -> None:
        self.directory = directory
        self.net = net
        self.key = directory / "id"
        self.processes: list[Process] = []
        for key in (self.key, directory / "host_key"):
            subprocess.run([tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.hostfile = directory / "hosts"
        self.hostfile.write_text("".join(f"{net.address(index)}  # {index}\n" for index in range(COUNT)))
        self.token = directory / "token"
        self.token.touch(mode=0o600)
        self.token.write_text("a secret of bare hosts, for one test")

    def start_sshd(self, index: int) -> None:
        home = self.directory / f"home{index}"
        home.mkdir()
        config = self.directory / f"sshd_config{index}"
        config.write_text(
            f"HostKey {self.directory}/host_key\nAuthorizedKeysFile {self.key}.pub\nPidFile none\nUsePAM no\n"
            f"StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME={home}\n"
        )
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it, empty
        command = [*self.net.inside(index), tool("sshd"), "-D", "-e", "-f", str(config)]
        sshd = Process(command, start_new_session=True)
        self.processes.append(sshd)
        sshd.wait_for("Server listening on 0.0.0.0")

    def start_trainer(self, index: int) -> None:
        words = [sys.executable, str(TRAINERS), "--n", "1", "--interval", "0.5", "--seconds", "300", "--write"]
        env = {**os.environ, "RANK": str(index), "WORLD_SIZE": "2"}
        self.processes.append(Process([*self.net.inside(index), *words], env=env, start_new_session=True))

    def each_host(self, *words: str) -> subprocess.CompletedProcess[str]:
        known = self.directory / "known_hosts"
        ssh = [
            "ssh",
            "-F",
            "none",
            "-i",
            str(self.key),
            "-o",
            f"UserKnownHostsFile={known}",
            "-o",
            "StrictHostKeyChecking=no",
        ]
        env = {**os.environ, "SSH": shlex.join(ssh), "DYNOLOG": str(Path(sys.executable).with_name("dynolog"))}
        env["DYNOLOG_FLAGS"] = "--reporting_interval_s=10"
        command = [*self.net.inside(None), str(EACH_HOST), words[0], str(self.hostfile), *words[1:]]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)

    def dyno(self, *words: str) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).with_name("dyno"))
        both = ",".join(self.net.address(index) for index in range(COUNT) if index != WITHOUT_SSHD)
        command = [*self.net.inside(None), program, "--token-file", str(self.token), "--hosts", both, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.stop(signal.SIGKILL)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    tool("ip")
    with net_hosts(COUNT) as net:
        made = Hosts(tmp_path, net)
        try:
            for index in range(COUNT):
                if index != WITHOUT_SSHD:
                    made.start_sshd(index)
            yield made
        finally:
            made.each_host("stop")
            made.stop()


def test_the_recipe_from_start_to_stop(hosts: Hosts, tmp_path: Path) -> None:
    """Twice started is once started; a host that cannot be reached is named and holds nobody."""
    for said in ("started", "runs already"):
        done = hosts.each_host("start", str(hosts.token))
        assert done.returncode == 1, done.stdout + done.stderr
        lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        assert lines[hosts.net.address(0)] == lines[hosts.net.address(1)] == said, done.stdout
        assert "Connection refused" in lines[hosts.net.address(WITHOUT_SSHD)]
    secret = tmp_path / "home0" / ".dynolog" / "token"
    assert secret.read_text() == hosts.token.read_text()
    assert secret.stat().st_mode & 0o077 == 0

    for index in (0, 1):
        hosts.start_trainer(index)

    def registered() -> bool:
        answer = json.loads(hosts.dyno("--json", "ps").stdout)
        return sum(len(host["reply"]["trainers"]) for host in answer["hosts"]) == 2

    eventually(registered, 60, "both trainers registered")
    fetched = tmp_path / "fetched"
    words = ("--log-file", f"{tmp_path}/traces", "--warmup-s", "0", "--duration-ms", "200", "--fetch", str(fetched))
    traced = hosts.dyno("gputrace", *words)
    assert traced.returncode == 0, traced.stdout + traced.stderr
    assert len(list(fetched.glob("10.77.0.1*_rank*.json"))) == 2

    stopped = hosts.each_host("stop")
    assert sorted(line for line in stopped.stdout.splitlines() if line.endswith(": stopped")) == [
        f"{hosts.net.address(index)}: stopped" for index in (0, 1)
    ]
    assert hosts.dyno("version").returncode == 3
