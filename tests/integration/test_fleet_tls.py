"""Many hosts over TLS: network namespaces with a daemon each, one of them with a certificate that has expired, one of another authority."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.certificates import Authority
from fakes.net_hosts import NetHosts, net_hosts
from integration.harness import REPOSITORY, Process, eventually, needs_root

pytestmark = [pytest.mark.root, needs_root]

GOOD, ALSO_GOOD, EXPIRED, STRANGE = range(4)
TRAINERS = REPOSITORY / "bench" / "trainers.py"
RULES = '[[rule]]\ncertificate = "ops-*"\nrole = "admin"\n[[rule]]\ncertificate = "dev-*"\nrole = "read"\n'


class Cluster:
    """The hosts, and dyno beside them with a certificate."""

    def __init__(self, directory: Path, net: NetHosts) -> None:
        self.directory = directory
        self.net = net
        self.authority = Authority(directory / "tls")
        self.processes: list[Process] = []
        self.daemons: list[Process] = []
        rules = directory / "authz.toml"
        rules.write_text(RULES)
        rules.chmod(0o600)

    def start(self) -> None:
        for index in range(4):
            signer = Authority(self.directory / "stranger") if index == STRANGE else self.authority
            certificate, key = signer.issue(f"host{index}", self.net.address(index), expired=index == EXPIRED)
            flags = [
                "--rpc_bind_address=0.0.0.0",
                f"--rpc_unix_socket={self.directory}/rpc{index}.sock",
                "--enable_ipc_monitor",
                f"--rpc_tls_cert={certificate}",
                f"--rpc_tls_key={key}",
                f"--rpc_tls_ca={self.authority.file}",
                f"--rpc_authz={self.directory}/authz.toml",
            ]
            self.daemons.append(self._run(index, "-m", "dynolog.daemon.main", *flags))
        for daemon in self.daemons:
            daemon.wait_for("dynolog is ready", timeout_s=90)
        for index in (GOOD, ALSO_GOOD):
            self._run(
                index, str(TRAINERS), "--n", "1", "--interval", "0.5", "--seconds", "300", "--job-id", "7", "--write"
            )

    def _run(self, index: int, *words: str) -> Process:
        process = Process([*self.net.inside(index), sys.executable, *words], env={**os.environ}, start_new_session=True)
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.stop(signal.SIGKILL)

    def dyno(self, who: str, *words: str) -> subprocess.CompletedProcess[str]:
        tls = self.authority.client(who)
        options = ["--tls-ca", tls.authority, "--tls-cert", tls.certificate, "--tls-key", tls.key, "--timeout", "30"]
        command = [*self.net.inside(None), sys.executable, "-m", "dynolog.cli.main", *options, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)

    def hosts(self, *indices: int) -> str:
        return ",".join(map(self.net.address, indices))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with net_hosts(4) as net:
        cluster = Cluster(tmp_path_factory.mktemp("fleet"), net)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def test_each_host_that_is_not_to_be_trusted_is_named_with_the_reason(cluster: Cluster) -> None:
    done = cluster.dyno("ops-1", "status", "--hosts", cluster.hosts(*range(4)))
    assert done.returncode == 1
    assert "2 of 4 hosts gave no answer" in done.stderr
    assert f"{cluster.hosts(EXPIRED)}: the certificate of the daemon has expired" in done.stderr
    assert f"{cluster.hosts(STRANGE)}: the certificate of the daemon is not signed by the authority" in done.stderr


def test_a_job_is_traced_and_fetched_over_tls(cluster: Cluster, tmp_path: Path) -> None:
    hosts = cluster.hosts(GOOD, ALSO_GOOD)

    def registered() -> bool:
        answer = json.loads(cluster.dyno("ops-1", "--json", "ps", "--hosts", hosts).stdout)
        return sum(len(host["reply"]["trainers"]) for host in answer["hosts"]) == 2

    eventually(registered, 90, "trainers registered")
    words = [
        "--job-id",
        "7",
        "--log-file",
        f"{tmp_path}/traces/",
        "--duration-ms",
        "100",
        "--fetch",
        f"{tmp_path}/fetched",
    ]
    done = cluster.dyno("ops-1", "gputrace", "--hosts", hosts, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads((tmp_path / "fetched" / "manifest.json").read_text())
    assert [Path(process["fetched"]).exists() for process in manifest["processes"]] == [True, True]
    for index in (GOOD, ALSO_GOOD):
        # Everybody was asked first, by a dry run: that is another line.
        (line,) = cluster.daemons[index].wait_for('"triggered_count":1,"matched":1,"request":')
        assert '"proved_by":"certificate ops-1"' in line
        assert '"transport":"remote"' in line
        assert cluster.daemons[index].wait_for('audit: {"fn":"fetchTrace"')


def test_roles_hold_on_all_hosts(cluster: Cluster) -> None:
    hosts = cluster.hosts(GOOD, ALSO_GOOD)
    assert cluster.dyno("dev-1", "ps", "--hosts", hosts).returncode == 0
    refused = cluster.dyno("dev-1", "reload", "--hosts", hosts)
    assert refused.returncode == 3
    assert "reload needs the role admin, and certificate dev-1 has read" in refused.stderr
    reloaded = cluster.dyno("ops-1", "reload", "--hosts", hosts)
    assert reloaded.returncode == 0
    assert reloaded.stdout.splitlines() == [
        f"{hosts.replace(',', ', ')}:",
        "    now in effect: the rules of --rpc_authz",
    ]
