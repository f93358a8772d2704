"""A Debian machine with a real systemd as its first process, in namespaces of its own: nothing of the host is touched."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PACKAGES = "systemd,systemd-sysv,dbus,python3,logrotate"
CGROUPS = Path("/sys/fs/cgroup/unified")
# What runs as the first process of the new namespaces: it makes the root directory a machine's, and becomes systemd.
_INIT = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for node in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/${node%:*}" c 1 "${node#*:}"; done
mknod -m 666 dev/tty c 5 0
mount -t devpts devpts dev/pts
mkdir -p .old
pivot_root . .old
umount -l /.old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"""


def debootstrap(directory: Path, suite: str = "bookworm", include: str = PACKAGES) -> None:
    """A minimal Debian in `directory`."""
    command = ["debootstrap", "--variant=minbase", f"--include={include}", suite, str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=900)


class Machine:
    """One that runs. `pid` is its systemd as the host sees it."""

    def __init__(self, root: Path, pid: int) -> None:
        self.root = root
        self.pid = pid

    def run(self, command: str, check: bool = True, timeout_s: float = 120.0) -> str:
        """Output of a shell command in the machine, errors among it. Raises AssertionError when it fails and `check` is set."""
        done = subprocess.run(
            [
                "nsenter",
                "-t",
                str(self.pid),
                "-a",
                "env",
                "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                "sh",
                "-c",
                command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: exit code {done.returncode}: {done.stdout[-3000:]}"
        return done.stdout

    def popen(self, *command: str) -> subprocess.Popen[str]:
        """A process in the machine, to talk to."""
        return subprocess.Popen(
            ["nsenter", "-t", str(self.pid), "-a", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def property(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run(f"systemctl show --value --property={name} {unit}").strip()


@contextlib.contextmanager
def running_machine(root: Path) -> Iterator[Machine]:
    """Boots `root`; every process of it ends with the block."""
    cgroup = CGROUPS if CGROUPS.is_dir() else Path("/sys/fs/cgroup")
    own = Path(tempfile.mkdtemp(prefix="dynolog-machine-", dir=cgroup))
    unshare = "unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child"
    boot = subprocess.Popen(
        ["sh", "-c", f'echo $$ > {own}/cgroup.procs; exec {unshare} sh -c "$2" init "$1"', "boot", str(root), _INIT],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        machine = Machine(root, _first_process(boot))
        machine.run("systemctl is-system-running --wait", check=False)
        yield machine
    finally:
        boot.send_signal(signal.SIGKILL)
        boot.wait()
        _remove_cgroups(own)


def _first_process(boot: subprocess.Popen[bytes]) -> int:
    """The pid of systemd, once it is that."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert boot.poll() is None, "the machine ended while it booted: what it said is above"
        children = Path(f"/proc/{boot.pid}/task/{boot.pid}/children").read_text().split()
        if children and os.path.basename(os.readlink(f"/proc/{children[0]}/exe")) == "systemd":
            ready = subprocess.run(
                ["nsenter", "-t", children[0], "-a", "test", "-S", "/run/systemd/private"], check=False, timeout=30
            )
            if ready.returncode == 0:
                return int(children[0])
        time.sleep(0.1)
    raise AssertionError("the machine did not boot within 60 s")


def _remove_cgroups(top: Path) -> None:
    """Leaves first; the kernel needs a moment until a killed process has left its group."""
    deadline = time.monotonic() + 30
    while top.exists() and time.monotonic() < deadline:
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        time.sleep(0.05)


def copy_of(base: Path, target: Path) -> Path:
    """A machine of its own from a prepared one."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(target)], check=True)
    return target
