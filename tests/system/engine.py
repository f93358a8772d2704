"""A node with a container engine (podman), in namespaces of its own: its containers see no process, network or image of this machine."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# podman's own cgroup files and limits: what it asks for where it is told nothing (1,048,576 files) needs CAP_SYS_RESOURCE, and crun
# refuses a machine that has both versions of cgroups mounted.
_SETTINGS = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
# The first process of the node. The link is a network card that no container has.
_INIT = """
set -e
mount --make-rprivate /
mount -t proc proc /proc
ip link set lo up
ip link add node0 type veth peer name node1
echo ready
exec sleep infinity
"""


class Node:
    """One that runs. `enter` is the command that runs another one on it, `podman` the engine there, `directory` its files."""

    def __init__(self, directory: Path, pid: int) -> None:
        self.directory = directory
        self.enter = ("nsenter", "-t", str(pid), "--mount", "--pid", "--net", "--uts", "--ipc")
        storage = (f"--root={directory}/images", f"--runroot={directory}/run", "--storage-driver=overlay")
        self.podman = (*self.enter, "env", f"CONTAINERS_CONF={directory}/containers.conf", "podman", *storage)

    def run(self, *command: str, check: bool = True, timeout_s: float = 120.0) -> str:
        """Output of a command on the node, errors among it. Raises AssertionError when it fails and `check` is set."""
        return _output((*self.enter, *command), check, timeout_s)

    def engine(self, *arguments: str, check: bool = True, timeout_s: float = 300.0) -> str:
        """The same of a podman command."""
        return _output((*self.podman, *arguments), check, timeout_s)

    def property(self, container: str, template: str) -> str:
        """A field of `podman inspect`: "{{.State.Pid}}"."""
        return self.engine("inspect", "--format", template, container).strip()


def _output(command: tuple[str, ...], check: bool, timeout_s: float) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.returncode}: {done.stdout[-3000:]}"
    return done.stdout


@contextlib.contextmanager
def running_node() -> Iterator[Node]:
    """A node without images; its containers and its files end with the block."""
    directory = Path(tempfile.mkdtemp(prefix="dynolog-node-"))
    (directory / "containers.conf").write_text(_SETTINGS)
    boot = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", _INIT],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert boot.stdout is not None
        assert boot.stdout.readline() == "ready\n", "the node did not start: what it said is above"
        (pid,) = Path(f"/proc/{boot.pid}/task/{boot.pid}/children").read_text().split()
        node = Node(directory, int(pid))
        try:
            yield node
        finally:
            node.engine("rm", "--force", "--all", "--time=0", check=False)
    finally:
        boot.send_signal(signal.SIGKILL)
        boot.communicate()
        _remove(directory)


def _remove(directory: Path) -> None:
    """The kernel needs a moment until the mounts of killed processes have gone."""
    deadline = time.monotonic() + 30
    while directory.exists():
        try:
            shutil.rmtree(directory)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def import_base(node: Node, root: Path, name: str) -> None:
    """A Debian directory with python3 as a base image, with `python` where the official images of Python have it."""
    link = root / "usr/local/bin/python"
    link.unlink(missing_ok=True)
    link.symlink_to("/usr/bin/python3")
    for cache in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(root / cache, ignore_errors=True)
    archive = root.parent / "base.tar"
    subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
    path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    node.engine("import", "--change", f"ENV {path}", str(archive), name)
    os.unlink(archive)
