"""A job on many hosts, each a network namespace with a daemon and two simulated trainers, and what can go wrong with hosts.

32 hosts, or as many as DYNOLOG_FLEET_HOSTS says; those that are not in trouble must all be complete. All of it takes 1.4 GB of memory.
"""

import contextlib
import glob
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynolog.analysis.editing.host_tracks import PID as HOST_PID
from fakes.net_hosts import NetHosts, net_hosts
from integration.harness import REPOSITORY, Process, eventually, needs_root, tool

pytestmark = [pytest.mark.root, needs_root]

COUNT = max(int(os.environ.get("DYNOLOG_FLEET_HOSTS", "32")), 8)
DOWN, MUTE, SLOW, WRONG_CLOCK, KILLED, FULL = range(2, 8)
TROUBLED = {DOWN, MUTE, KILLED, FULL}
TRAINERS = REPOSITORY / "bench" / "trainers.py"
DYNO = Path(sys.executable).with_name("dyno")
CLOCK_OFF_S = 2

LISTEN_ONLY = """
import socket, time
server = socket.create_server(("0.0.0.0", 1778), backlog=64)
print("ready", flush=True)
time.sleep(300)
"""
# Passes everything on, each way 150 ms late.
SLOW_PROXY = """
import asyncio
async def pass_on(reader, writer):
    while data := await reader.read(65536):
        await asyncio.sleep(0.15)
        writer.write(data)
    writer.close()
async def serve(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", 1779)
    await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer), return_exceptions=True)
async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 1778)
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def clock_of(index: int) -> dict[str, str]:
    """The environment that puts the wall clock of one host's processes ahead; intervals and the times of files stay as they are."""
    if index != WRONG_CLOCK:
        return {}
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not found:
        pytest.skip("needs libfaketime")
    off = {"FAKETIME": f"+{CLOCK_OFF_S}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
    return {"LD_PRELOAD": found[0], **off}


class Cluster:
    """The hosts and everything that runs on them."""

    def __init__(self, directory: Path, net: NetHosts) -> None:
        self.directory = directory
        self.net = net
        self.traces = directory / "traces"
        self.traces.mkdir()
        self.token = directory / "token"
        self.token.touch(mode=0o600)
        self.token.write_text("a secret of many hosts, for one test")
        self.daemons: dict[int, Process] = {}
        self.others: list[Process] = []

    def start(self) -> None:
        for index in range(COUNT):
            if index == MUTE:
                self._helper(index, LISTEN_ONLY)
            else:
                self._daemon(index)
        self._helper(SLOW, SLOW_PROXY)
        for index, daemon in self.daemons.items():
            daemon.wait_for("dynolog is ready", timeout_s=90)
            for local_rank in range(2):
                self._trainer(index, local_rank)
        self.net.cut(DOWN)

    def _run(self, index: int, *command: str, **env: str) -> Process:
        return Process([*self.net.inside(index), *command], env={**os.environ, **env}, start_new_session=True)

    def _helper(self, index: int, code: str) -> None:
        helper = self._run(index, sys.executable, "-c", code)
        self.others.append(helper)
        helper.wait_for("ready", timeout_s=60)

    def _daemon(self, index: int) -> None:
        port = 1779 if index == SLOW else 1778
        flags = [
            f"--port={port}",
            "--rpc_bind_address=0.0.0.0",
            f"--rpc_token_file={self.token}",
            "--enable_ipc_monitor",
        ]
        flags.append(f"--rpc_unix_socket={self.directory}/rpc{index}.sock")
        self.daemons[index] = self._run(index, sys.executable, "-m", "dynolog.daemon.main", *flags, **clock_of(index))

    def _trainer(self, index: int, local_rank: int) -> None:
        words = [
            sys.executable,
            str(TRAINERS),
            "--n",
            "1",
            "--interval",
            "0.5",
            "--seconds",
            "600",
            "--job-id",
            "7",
            "--write",
        ]
        if index == FULL:  # what it writes goes to a disk of its own; without space it ends, and its child with it
            alone = f'mount -t tmpfs -o size=17m none "{self.traces}" && "$@"; kill -9 0'
            words = [tool("unshare"), "--mount", "sh", "-c", alone, "sh", *words]
        rank = {"RANK": str(2 * index + local_rank), "LOCAL_RANK": str(local_rank), "WORLD_SIZE": str(2 * COUNT)}
        self.others.append(self._run(index, *words, **rank, **clock_of(index)))

    def stop(self) -> None:
        running = [*self.others, *self.daemons.values()]
        for process in running:  # simulated trainers have children, which hold the other end of their output
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in running:
            process.stop(signal.SIGKILL)
        for memory in Path("/dev/shm").glob(
            "faketime_shm_*"
        ):  # libfaketime takes it away only when a process ends well
            pid = memory.name.rpartition("_")[2]
            if not Path(f"/proc/{pid}").exists():
                memory.unlink(missing_ok=True)
                memory.with_name(f"sem.faketime_sem_{pid}").unlink(missing_ok=True)

    def hosts(self, *indices: int) -> str:
        return ",".join(map(self.net.address, indices or range(COUNT)))

    def command(self, *words: str, timeout_s: float = 3) -> list[str]:
        timeout = ("--timeout", f"{timeout_s:g}")
        return [*self.net.inside(None), str(DYNO), "--token-file", str(self.token), *timeout, *words]

    def dyno(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=120, check=False)

    def wait_for_trainers(self, *indices: int) -> None:
        def all_are_there() -> bool:
            answer = json.loads(self.dyno("--json", "ps", "--hosts", self.hosts(*indices)).stdout)
            # One that is still slow to answer has no reply yet.
            found = [trainer for host in answer["hosts"] if "reply" in host for trainer in host["reply"]["trainers"]]
            return len([trainer for trainer in found if "rank" in trainer and "poll_interval_s" in trainer]) == 2 * len(
                indices
            )

        eventually(all_are_there, 90, "trainers registered")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    tool("ip")
    with net_hosts(COUNT) as net:
        made = Cluster(tmp_path_factory.mktemp("fleet"), net)
        try:
            made.start()
            made.wait_for_trainers(*(index for index in made.daemons if index != DOWN))
            yield made
        finally:
            made.stop()


def by_host(manifest: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for process in manifest["processes"]:
        found.setdefault(process["host"], []).append(process)
    return found


def read(path: Path) -> dict[str, Any]:
    """The manifest; it must be whole whenever it is looked at."""
    manifest: dict[str, Any] = json.loads(path.read_bytes())
    return manifest


def lose_acknowledgement(path: Path, manifest: dict[str, Any], label: str) -> None:
    for host in manifest["hosts"]:
        if host["label"] == label:
            host |= {"request_id": "", "outcome": "silent"}
    for process in by_host(manifest)[label]:
        process |= {"outcome": "asked", "capture_id": "", "path": ""}
    path.write_text(json.dumps(manifest))


def make_trouble(cluster: Cluster, path: Path, ended: threading.Event) -> None:
    """As soon as the manifest says that a process has its config, one host's daemon is killed, and another's disk fills up."""
    trouble: dict[str, Callable[[dict[str, Any]], None]] = {
        cluster.net.address(KILLED): lambda _: cluster.daemons[KILLED].popen.kill(),
        cluster.net.address(FULL): lambda process: fill_disk(Path(f"/proc/{process['host_pid']}/root{cluster.traces}")),
    }
    seen: set[int] = set()
    while not ended.wait(0.02):
        for process in read(path)["processes"] if path.exists() else []:
            if (
                process["outcome"] in ("delivered", "recording")
                and process["host"] in trouble
                and process["pid"] not in seen
            ):
                seen.add(process["pid"])
                trouble[process["host"]](process)


def fill_disk(directory: Path) -> None:
    with contextlib.suppress(OSError), open(directory / "filler", "wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass


def test_ctrl_c_leaves_a_true_manifest_from_which_it_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    """The traces go on; --resume follows them to the files, and a second --resume finds all done and here.

    Of one host the manifest is made to say that it never acknowledged, as when dyno is killed in that moment: its request is found.
    """
    fetched = tmp_path / "fetched"
    path = fetched / "manifest.json"
    words = ("gputrace", "--hosts", cluster.hosts(0, 1), "--job-id", "7", "--warmup-s", "1", "--fetch", str(fetched))
    running = Process(cluster.command(*words, "--log-file", f"{cluster.traces}/first.json"))
    running.wait_for("delivered", timeout_s=60)
    assert running.stop(signal.SIGINT) == 130, running.output
    assert f"dyno gputrace --resume {path} --fetch {fetched}" in running.output
    manifest = read(path)
    assert manifest["state"] == "interrupted"
    assert {process["outcome"] for process in manifest["processes"]} <= {"pending", "delivered", "recording", "written"}
    lose_acknowledgement(path, manifest, cluster.net.address(1))
    for _ in range(2):
        resumed = cluster.dyno("gputrace", "--resume", str(path), "--fetch", str(fetched))
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert "4 processes on 2 hosts: 4 written, 4 fetched" in resumed.stdout
    manifest = read(path)
    assert manifest["state"] == "done"
    assert len({process["path"] for process in manifest["processes"]}) == 4
    check_files(manifest)


def test_the_summary_says_the_truth_about_each_host_and_the_others_are_complete(
    cluster: Cluster, tmp_path: Path
) -> None:
    fetched = tmp_path / "fetched"
    path = fetched / "manifest.json"
    words = ["gputrace", "--hosts", cluster.hosts(), "--job-id", "7", "--log-file", f"{cluster.traces}/"]
    words += ["--warmup-s", "0", "--duration-ms", "200", "--fetch", str(fetched)]
    running = Process(cluster.command(*words, timeout_s=8))
    ended = threading.Event()
    killer = threading.Thread(target=make_trouble, args=(cluster, path, ended))
    killer.start()
    try:
        code = running.popen.wait(180)
    finally:
        ended.set()
        killer.join()
        running.stop(signal.SIGKILL)
    output = running.output
    assert code == 1, output
    manifest = read(path)
    hosts = {host["label"]: host for host in manifest["hosts"]}
    found = by_host(manifest)

    for index in set(range(COUNT)) - TROUBLED:
        processes = found[cluster.net.address(index)]
        assert [process["outcome"] for process in processes] == ["written"] * 2, output
        assert [process["rank"] for process in processes] == [2 * index, 2 * index + 1]
    assert hosts[cluster.net.address(DOWN)]["outcome"] == "unreachable"
    assert hosts[cluster.net.address(MUTE)]["outcome"] == "silent"
    assert "did not answer within 8 s" in hosts[cluster.net.address(MUTE)]["error"]
    assert hosts[cluster.net.address(KILLED)]["outcome"] == "lost"
    for process in found[cluster.net.address(KILLED)]:
        assert process["outcome"] == "unknown"
        assert "its daemon was lost" in process["reason"]
    for process in found[cluster.net.address(FULL)]:
        assert process["outcome"] == "failed", output
        assert process["reason"]
        assert process["sha256"] == ""

    start_ns = manifest["start_wall_ns"]
    shifts_s = {
        index: (hosts[cluster.net.address(index)]["start_wall_ns"] - start_ns) / 1e9 for index in (0, SLOW, WRONG_CLOCK)
    }
    # Right to half a round trip, which takes its time on a busy machine. No clock is corrected that may be right.
    assert shifts_s[WRONG_CLOCK] == pytest.approx(CLOCK_OFF_S, abs=0.5)
    assert (shifts_s[0], shifts_s[SLOW]) == (0, 0)
    said = re.search(rf"the clock of {cluster.net.address(WRONG_CLOCK)} is \+([\d.]+) s off", output)
    assert said, output
    assert float(said[1]) == pytest.approx(CLOCK_OFF_S, abs=0.5)
    assert "the clock of" not in output.replace(f"the clock of {cluster.net.address(WRONG_CLOCK)}", "")
    check_files(manifest)
    good = 2 * (COUNT - len(TROUBLED))
    assert f"{good} written" in output
    assert f"{good} fetched" in output
    assert len(list(fetched.glob("*.json"))) == good + 1


def check_files(manifest: dict[str, Any]) -> None:
    """What was fetched is what was written and what the manifest says, with the rank that the simulated trainers leave out."""
    for process in manifest["processes"]:
        if process["outcome"] != "written":
            assert not process["fetched"]
            continue
        data = Path(process["fetched"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == process["fetched_sha256"]
        trace = json.loads(data)
        assert trace["distributedInfo"] == {"rank": process["rank"], "world_size": 2 * COUNT}
        of_the_host = [event for event in trace["traceEvents"] if event.get("pid") == HOST_PID]
        assert len(trace["traceEvents"]) - len(of_the_host) == process["events"]
        names = {event["name"] for event in of_the_host if event["ph"] == "C"}
        assert len(names) == process["host_tracks"], process["host_note"]
        assert "host cpu_user_pct" in names
        assert process["distributed_info_added"]
        assert f"_rank{process['rank']}_{process['pid']}.json" in process["path"]


def test_other_subcommands_ask_all_hosts(cluster: Cluster) -> None:
    """A table with a host column; 0 only when all answered, 3 when none did."""
    table = cluster.dyno("status", "--hosts", cluster.hosts(0, 1, SLOW))
    assert table.returncode == 0, table.stderr
    assert table.stdout.split()[0] == "HOST"
    assert all(cluster.net.address(index) in table.stdout for index in (0, 1, SLOW))
    hostfile = cluster.directory / "hosts"
    hostfile.write_text(f"{cluster.net.address(0)} slots=2\n{cluster.net.address(MUTE)} slots=2\n")
    part = cluster.dyno("version", "--json", "--hostfile", str(hostfile))
    assert part.returncode == 1
    answer = json.loads(part.stdout)
    assert [host["outcome"] for host in answer["hosts"]] == ["answered", "silent"]
    assert cluster.net.address(MUTE) in part.stderr
    assert cluster.dyno("metrics", "--hosts", cluster.hosts(MUTE)).returncode == 3


def test_a_dry_run_and_a_requirement_start_nothing(cluster: Cluster) -> None:
    where = f"{cluster.traces}/never/"
    words = ("gputrace", "--job-id", "7", "--log-file", where, "--hosts", cluster.hosts(0, MUTE))
    refused = cluster.dyno(*words, "--require", "all")
    assert refused.returncode == 1
    assert "1 of 2 hosts have a process that can be traced, and --require asks for 100%" in refused.stderr
    dry = cluster.dyno(*words, "--dry-run", "--json", "--sample", "1")
    (process,) = [one for one in json.loads(dry.stdout)["processes"] if one["outcome"] == "planned"]
    assert process["rank"] == 0
    assert not Path(where).exists()
