"""A real SLURM of several nodes on this machine, each node in a network and host name of its own.

Everything lives in one directory and in namespaces that end with their processes: nothing of the machine's own is touched. Needs root and
Debian's slurmctld, slurmd, slurm-client and munge.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from integration.harness import eventually

_CONTROLLER = "10.177.0.1"
_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "unshare", "nsenter", "ip")
_ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")


class SlurmCluster:
    """`run` is a shell of the controller's machine. Nodes are n1, n2..., with 8 CPUs each."""

    def __init__(self, directory: Path, node_count: int) -> None:
        self.directory = directory
        self.nodes = [f"n{number + 1}" for number in range(node_count)]
        self._started: list[subprocess.Popen[bytes]] = []
        self._controller = 0
        self._is_up = False
        self._env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "KINETO", "DYNO"))},
            "SLURM_CONF": str(directory / "slurm.conf"),
            "DYNO_RUN_DIR": str(directory / "run"),
            "PATH": f"{directory}/bin:{os.environ['PATH']}:/usr/sbin:/sbin",
        }

    # --- starting and stopping ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Up when every node is idle."""
        for name in ("state", "run", "bin"):
            (self.directory / name).mkdir()
        for name, module in (("dyno", "main"), ("dyno-run", "dyno_run.command"), ("unitrace", "unitrace")):
            script = self.directory / "bin" / name
            script.write_text(f'#!/bin/sh\nexec {sys.executable} -m dynolog.cli.{module} "$@"\n')
            script.chmod(0o755)
        hosts = [f"{_address(index)} {name}\n" for index, name in enumerate(self.nodes)]
        (self.directory / "hosts").write_text(f"127.0.0.1 localhost\n{_CONTROLLER} ctl\n" + "".join(hosts))
        (self.directory / "slurm.conf").write_text(self._configuration())
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self._controller = self._machine([], "ctl", f"mount --bind {self.directory}/hosts /etc/hosts", "-m")
        self._in(
            self._controller,
            f"ip link add br0 type bridge; ip addr add {_CONTROLLER}/24 dev br0; ip link set br0 up",
        )
        machines = [self._machine(_entering(self._controller), name, ":") for name in self.nodes]
        for index, machine in enumerate(machines):
            self._in(
                self._controller,
                f"ip link add v{index} type veth peer name eth0 netns {machine}; ip link set v{index} master br0 up",
            )
            self._in(machine, f"ip addr add {_address(index)}/24 dev eth0; ip link set eth0 up")
        self._start_slurm(machines)

    def _start_slurm(self, machines: Sequence[int]) -> None:
        at = self.directory
        munged = ["munged", "--foreground", "--force", f"--key-file={at}/munge.key", f"--socket={at}/munge.sock"]
        munged += [f"--pid-file={at}/munge.pid", f"--log-file={at}/munge.log", f"--seed-file={at}/munge.seed"]
        self._spawn([*_entering(self._controller), *munged], "munged")
        eventually((at / "munge.sock").exists, 20, "munged is up")
        self._spawn([*_entering(self._controller), "slurmctld", "-D", "-c"], "slurmctld")
        for name, machine in zip(self.nodes, machines, strict=True):
            self._spawn([*_entering(machine), "slurmd", "-D", "-N", name], f"slurmd.{name}")
        self._is_up = True
        everybody = f"idle {len(self.nodes)}"
        eventually(
            lambda: self.run("sinfo", "-h", "-o", "%t %D", check=False).strip() == everybody, 30, "nodes are idle"
        )

    def _configuration(self) -> str:
        at = self.directory
        lines = [
            "ClusterName=test",
            f"SlurmctldHost=ctl({_CONTROLLER})",
            "AuthType=auth/munge",
            f"AuthInfo=socket={at}/munge.sock",
            "CredType=cred/munge",
            "SlurmUser=root",
            "SlurmdUser=root",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "SchedulerParameters=bf_interval=1,sched_min_interval=1,batch_sched_delay=1",
            "SlurmdParameters=config_overrides",
            "ReturnToService=2",
            "SwitchType=switch/none",
            "PropagateResourceLimits=NONE",
            "KillWait=2",
            f"StateSaveLocation={at}/state",
            f"SlurmdSpoolDir={at}/spool.%n",
            f"SlurmctldPidFile={at}/slurmctld.pid",
            f"SlurmdPidFile={at}/slurmd.%n.pid",
            f"SlurmctldLogFile={at}/slurmctld.log",
            f"SlurmdLogFile={at}/slurmd.%n.log",
            *(
                f"NodeName={name} NodeHostname={name} NodeAddr={_address(index)} Port=17001 CPUs=8"
                for index, name in enumerate(self.nodes)
            ),
            "PartitionName=p Nodes=ALL Default=YES State=UP MaxTime=INFINITE",
        ]
        return "\n".join(lines) + "\n"

    def _machine(self, prefix: list[str], name: str, setup: str, *more: str) -> int:
        """The pid of a process that holds the namespaces of one machine."""
        reader, writer = os.pipe()
        script = f"set -e; hostname {name}; ip link set lo up; {setup}; echo ok > /proc/self/fd/{writer}; exec sleep infinity"
        command = [*prefix, "unshare", "-n", "-u", *more, "sh", "-c", script]
        process = self._spawn(command, f"machine.{name}", pass_fds=(writer,))
        os.close(writer)
        with open(reader, "rb") as pipe:
            assert pipe.readline() == b"ok\n", (self.directory / f"machine.{name}.out").read_text()
        return process.pid

    def _in(self, machine: int, script: str) -> None:
        subprocess.run([*_entering(machine), "sh", "-ec", script], check=True, timeout=120)

    def _spawn(self, command: list[str], name: str, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        with open(self.directory / f"{name}.out", "wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._env,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self._started.append(process)
        return process

    def stop(self) -> None:
        """End every job, then what was started here, the last first."""
        if self._is_up:
            with contextlib.suppress(subprocess.SubprocessError):
                self._cancel_all()
        for process in reversed(self._started):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self._started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def set(self, name: str, value: str) -> None:
        """An environment variable of everything that is run from now on."""
        self._env[name] = value

    def _cancel_all(self) -> None:
        for state in ("RUNNING", "PENDING"):
            self.run("scancel", "--full", f"--state={state}", check=False, timeout_s=10)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.run("squeue", "-h", check=False, timeout_s=10).strip():
            time.sleep(0.1)

    # --- using it ----------------------------------------------------------------------------------------------------

    def run(self, *command: str, check: bool = True, timeout_s: float = 60.0, **variables: str) -> str:
        """What a command of the controller's machine prints; `variables` are added to its environment."""
        done = self.start_command(*command, **variables)
        try:
            stdout, stderr = done.communicate(timeout=timeout_s)
        except BaseException:
            done.kill()
            done.communicate()
            raise
        if check and done.returncode:
            pytest.fail(f"{command} ended with {done.returncode}:\n{stdout}\n{stderr}\n{self.logs()}")
        return stdout if check else stdout + stderr

    def start_command(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """The same, not waited for."""
        return subprocess.Popen(
            [*_entering(self._controller), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self._env, **variables},
        )

    def submit(self, *arguments: str) -> str:
        """The id of a batch job."""
        return self.run("sbatch", "--parsable", "-o", f"{self.directory}/job.%j.out", *arguments).strip()

    def wait_for_job(self, job: str, *states: str, timeout_s: float = 120.0) -> None:
        """Until the job is in one of the states (ended, when none is given)."""

        def is_there() -> bool:
            said = self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").split()
            return bool(said) and all(state in (states or _ENDED) for state in said)

        eventually(is_there, timeout_s, f"job {job} is {states or 'over'}: {self.logs()}")

    def logs(self) -> str:
        """What went wrong, perhaps."""
        texts = [
            f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}" for path in self.directory.glob("job.*.out")
        ]
        return "\n".join(texts)


def _address(index: int) -> str:
    return f"10.177.0.{11 + index}"


def _entering(machine: int) -> list[str]:
    return ["nsenter", "-t", str(machine), "-n", "-u", "-m"]


@contextlib.contextmanager
def running_cluster(node_count: int = 3) -> Iterator[SlurmCluster]:
    """A cluster that is gone at the end; skips the test, loudly, where SLURM or root is missing."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            f"needs root and SLURM; missing: {', '.join(missing) or 'root'} (apt: slurmctld slurmd slurm-client munge)"
        )
    # Short, because a socket path has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="slurm-"))
    directory.chmod(0o755)
    cluster = SlurmCluster(directory, node_count)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
