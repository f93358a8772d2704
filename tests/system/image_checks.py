"""The container image: built from the wheel, and run with what docs/install.md says each feature needs. Run by `make test-image`.

The engine is a real podman on a node in namespaces (tests/system/engine.py). No registry of images is asked: the base is a Debian
with its own Python. Needs root, debootstrap, podman and runc.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # of kubernetes_validate
from tools.build_packages import download_wheels_of

import dynolog
from fakes.scripted_trainer import ScriptedTrainer
from integration.harness import eventually
from system.engine import Node, import_base, running_node
from system.machine import debootstrap

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = "localhost/debian-python"
TRACE = json.dumps(
    {"traceEvents": [{"ph": "X", "name": "step", "cat": "cpu_op", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}
)
# The mounts and capabilities of the table in docs/install.md, "In a container".
KERNEL = ("-v", "/proc:/host/proc:ro", "-v", "/sys:/host/sys:ro")
ROOT_DIRECTORY = ("-v", "/:/host:ro,rslave")
HOST_NAMESPACES = ("--network=host", "--pid=host")
ALONE = ("--network=none",)
NONE = ("--cap-drop=all",)
TRACING = (*NONE, "--cap-add=SYS_PTRACE,SYS_CHROOT,SETUID,SETGID,DAC_READ_SEARCH")
NAMESPACES = (*TRACING, "--cap-add=SYS_ADMIN")
NOBODY = "65534"


@pytest.fixture(scope="module")
def bare_node() -> Iterator[Node]:
    """A node that has the base image only."""
    with running_node() as running:
        debian = running.directory / "debian"
        debootstrap(debian, include="python3,python3-venv")
        import_base(running, debian, BASE)
        yield running


@pytest.fixture(scope="module")
def node(bare_node: Node) -> Node:
    """The same with the product's: `dynolog`."""
    build(bare_node)
    return bare_node


def build(node: Node) -> None:
    """As the Containerfile says, with this tree's wheel and the locked ones, which are fetched outside: the node has no network."""
    context = node.directory / "context"
    (context / "packaging").mkdir(parents=True)
    for name in ("packaging/Containerfile", "packaging/requirements.lock", ".dockerignore"):
        (context / name).write_bytes((REPOSITORY / name).read_bytes())
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(context / "dist"), "."]
    subprocess.run(wheel, cwd=REPOSITORY, check=True, timeout=300)
    locked = node.directory / "wheels"
    locked.mkdir()
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = node.engine("run", "--rm", *ALONE, BASE, "python", "-c", ask).strip()
    for path in download_wheels_of(version, os.uname().machine, REPOSITORY / "build" / "wheels"):
        (locked / path.name).write_bytes(path.read_bytes())
    (node.directory / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    volumes = ("-v", f"{locked}:/wheels:ro", "-v", f"{node.directory}/pip.conf:/etc/pip.conf:ro")
    # In a chroot: building needs no namespaces of its own, and a container's could not be nested everywhere.
    arguments = ("--isolation=chroot", "--layers=false", "--pull=never", f"--build-arg=BASE={BASE}", *volumes)
    node.engine("build", *arguments, "-f", f"{context}/packaging/Containerfile", "-t", "dynolog", str(context))


def start(node: Node, name: str, *options: str, flags: tuple[str, ...] = ()) -> None:
    """`podman run` of the image, until it serves."""
    node.engine("run", "--detach", f"--name={name}", *options, "dynolog", "--reporting_interval_s=1", *flags)
    serves(node, name)


def serves(node: Node, name: str) -> None:
    """Once it does, it says so in the container's log."""
    eventually(lambda: "dynolog is ready" in node.engine("logs", name), 60, f"{name} is ready")


def stop(node: Node, name: str) -> None:
    """SIGTERM, and SIGKILL after 20 s, which would give another exit code."""
    node.engine("stop", "--time=20", name)
    assert node.property(name, "{{.State.ExitCode}}") == "0", node.engine("logs", name)[-3000:]
    assert "Stopping: SIGTERM" in node.engine("logs", name)
    node.engine("rm", name)


def metrics(node: Node, name: str) -> dict[str, Any]:
    """The latest values; none before the first report."""
    # Without records it exits with 1 and says why on a line of its own.
    said = node.engine("exec", name, "dyno", "--json", "metrics", check=False)
    (line,) = (line for line in said.splitlines() if line.startswith("{"))
    answer = json.loads(line)
    return {key: value for record in answer["records"] for key, value in record["values"].items()}


def metrics_with(node: Node, name: str, key: str) -> dict[str, Any]:
    """The same, once `key` is there."""

    def look() -> dict[str, Any]:
        values = metrics(node, name)
        return values if key in values else {}

    return eventually(look, 60, f"{key} of {name}")


def capabilities(node: Node, name: str) -> int:
    """The effective ones of every process in the container."""
    return int(node.engine("exec", name, "grep", "CapEff", "/proc/self/status").split()[1], 16)


def trace(node: Node, name: str, trainer: ScriptedTrainer, directory: str, *options: str) -> None:
    """A trace of `trainer`: asked for, seen to be recorded, written, checked and fetched."""
    assert trainer.poll() == ""
    what = (f"--log-file={directory}/trace.json", "--duration-ms=100", "--fetch=/tmp/traces", "--wait-timeout=60")
    asking = subprocess.Popen(
        [*node.podman, "exec", name, "dyno", *options, "gputrace", "--json", *what],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    config = eventually(trainer.poll, 60, "a config")
    (path,) = (line.partition("=")[2] for line in config.splitlines() if line.startswith("ACTIVITIES_LOG_FILE="))
    trainer.poll(mask=1)  # while libkineto records it asks for one kind of config only
    eventually(lambda: "recording" in node.engine("exec", name, "dyno", *options, "trace"), 60, "it is seen to record")
    trainer.write(path.replace(".json", f"_{trainer.host_pid}.json"), TRACE)
    said, _ = asking.communicate(timeout=120)
    assert asking.returncode == 0, said
    assert "written" in said
    assert node.engine("exec", name, "sh", "-c", "cat /tmp/traces/*.json") == TRACE + "\n"


def in_a_container(node: Node, *options: str) -> ScriptedTrainer:
    """A trainer in a container with a network, processes and files of its own: process 1 there."""
    prefix = (*node.podman, "run", "--rm", "--interactive", *ALONE, *options, "--entrypoint=", "dynolog")
    return ScriptedTrainer("dynolog", prefix=prefix, python="/opt/dynolog/bin/python")


def says(node: Node, *arguments: str, options: tuple[str, ...] = ()) -> str:
    """What a container says that runs nothing else."""
    return node.engine("run", "--rm", *ALONE, *options, "dynolog", *arguments, check=False)


def test_what_the_image_holds(node: Node) -> None:
    assert says(node, "--version") == f"dynolog {dynolog.__version__}\n"
    assert says(node, "--check", "--use_prometheus") == "the flags are fine\n"
    size, base = (int(node.engine("image", "inspect", "--format={{.Size}}", name)) for name in ("dynolog", BASE))
    assert size - base < 160e6
    assert json.loads(node.engine("image", "inspect", "--format={{json .Config.Cmd}}", "dynolog")) == [
        "--reporting_interval_s=10",
        "--use_JSON",
    ]
    trace_file = REPOSITORY / "tests" / "data" / "traces" / "public" / "a100_triton.json.gz"
    options = ("-v", f"{trace_file}:/trace.json.gz:ro", "--entrypoint=dyno")
    assert "NVIDIA A100" in says(node, "analyze", "/trace.json.gz", options=options)
    assert "No module named pip" in says(node, "-mpip", options=("--entrypoint=python",))


def test_kernel_metrics_need_two_mounts_and_no_capability(node: Node) -> None:
    """And no file system of the node is seen with them; a container that sees the node's root directory has all."""
    start(node, "metrics", *ALONE, *KERNEL, *NONE)
    reading = (*ALONE, "--read-only", f"--user={NOBODY}:{NOBODY}", *ROOT_DIRECTORY)
    start(node, "nobody", *reading, *NONE)
    assert capabilities(node, "metrics") == 0
    values = metrics_with(node, "metrics", "rx_bytes.node0")
    assert "rx_bytes.lo" in values
    assert values["mem_total_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    seen = metrics_with(node, "nobody", "filesystem_size_bytes./")
    disk = os.statvfs("/")
    assert seen["filesystem_size_bytes./"] == disk.f_blocks * disk.f_frsize
    assert seen["filesystem_read_only./"] == 0, "below /host it is mounted read-only, on the node it is not"
    assert "rx_bytes.node0" in seen
    said = "mount its root directory there"
    eventually(lambda: said in node.engine("logs", "metrics"), 60, "it says that it sees no file system")
    assert not [key for key in metrics(node, "metrics") if key.startswith("filesystem_")]
    stop(node, "metrics")
    stop(node, "nobody")


def test_performance_counters(node: Node) -> None:
    """As uid 0 with the two capabilities that every podman's filter asks for; events of the kernel, which every machine counts."""
    flags = ("--enable_perf_monitor", "--perf_metrics=software", "--perf_monitor_reporting_interval_s=1")
    start(node, "counters", *ALONE, *KERNEL, *NONE, "--cap-add=PERFMON,SYS_ADMIN", flags=flags)
    assert metrics_with(node, "counters", "perf_page_faults")["perf_page_faults"] >= 0
    stop(node, "counters")


def test_traces_on_the_nodes_network(node: Node) -> None:
    """Of another user's process on the node, with five capabilities."""
    shared = node.directory / "traces"
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    node.directory.chmod(0o755)
    start(node, "host", *HOST_NAMESPACES, *KERNEL, *TRACING)
    assert capabilities(node, "host").bit_count() == 5
    with ScriptedTrainer("dynolog", uid=12001, prefix=node.enter, python="/usr/bin/python3") as trainer:
        trace(node, "host", trainer, str(shared))
    with in_a_container(node) as elsewhere:
        # It is not reached, and doctor says what would.
        said = node.engine("exec", "host", "dyno", "doctor")
        assert "--cap-add=SYS_ADMIN" in said, said
        assert elsewhere.host_pid == 1
    stop(node, "host")


def test_traces_in_other_containers_with_one_more(node: Node) -> None:
    start(node, "host", *HOST_NAMESPACES, *KERNEL, *NAMESPACES, flags=("--ipc_namespaces",))
    with in_a_container(node) as trainer:
        trace(node, "host", trainer, "/tmp")
    stop(node, "host")


def test_traces_in_other_containers_by_a_shared_directory(node: Node) -> None:
    """Without SYS_ADMIN, and with no more than reading the file takes: the destination is not looked at beforehand."""
    (node.directory / "sockets").mkdir()
    mount = ("-v", f"{node.directory}/sockets:/run/dyno")
    reading = (*NONE, "--cap-add=SYS_PTRACE,DAC_READ_SEARCH")
    start(node, "host", *HOST_NAMESPACES, *KERNEL, *reading, *mount, flags=("--ipc_socket_dir=/run/dyno",))
    with in_a_container(node, *mount, "-e", "KINETO_IPC_SOCKET_DIR=/run/dyno") as trainer:
        trace(node, "host", trainer, "/tmp")
    stop(node, "host")


def test_the_daemon_of_the_kubernetes_manifest(node: Node) -> None:
    """Its command, rights, mounts and limits, given to podman: a trainer in a pod is traced with the token."""
    manifest = yaml.safe_load((REPOSITORY / "docs/recipes/kubernetes/daemonset.yaml").read_text())
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["hostPID"]
    assert pod["hostNetwork"]
    token = node.directory / "secret"
    token.mkdir()
    (token / "token").write_text("a secret of thirty-two characters")
    (token / "token").chmod(0o400)
    propagation = {"HostToContainer": ",rslave"}
    sources = {"host": "/", "token": str(token)}
    mounts = [
        f"-v={sources[mount['name']]}:{mount['mountPath']}:ro{propagation.get(mount.get('mountPropagation'), '')}"
        for mount in container["volumeMounts"]
    ]
    rights = [f"--privileged={str(container['securityContext']['privileged']).lower()}"]
    memory = "--memory=" + container["resources"]["limits"]["memory"].replace("Mi", "m")
    options = ("--detach", "--name=host", *HOST_NAMESPACES, *rights, *mounts, memory, "--entrypoint=")
    node.engine("run", *options, "dynolog", *container["command"])
    serves(node, "host")
    with in_a_container(node) as trainer:
        trace(node, "host", trainer, "/tmp", "--token-file=/etc/dynolog/token")
    stop(node, "host")
