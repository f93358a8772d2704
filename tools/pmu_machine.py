"""An emulated ARM machine with a PMU, on which the product's own code counts (`make test-pmu`).

Where no hardware counters are to be had, QEMU has some: the `virt` machine's PMUv3, with a Debian kernel and Python below it. Debian's
packages for arm64 are fetched into a directory of their own; nothing is installed. Needs qemu-system-arm, dpkg and apt.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.cpio_archive import write_archive

REPOSITORY = Path(__file__).resolve().parent.parent
GUEST = REPOSITORY / "tests" / "emulated" / "guest.py"
MARK = "PMU-MACHINE "
PACKAGES = (
    "busybox-static",
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libc6",
    "libgcc-s1",
    "zlib1g",
    "libexpat1",
    "libffi8",
    "libssl3",
)
INIT = f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /sys/fs/cgroup
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
# The first change of controllers makes Linux 6.1 give perf_event to child groups; elsewhere systemd does that.
/bin/busybox sh -c 'echo +pids > /sys/fs/cgroup/cgroup.subtree_control'
/bin/busybox mount -t tracefs tracefs /sys/kernel/tracing
/bin/busybox ip link set lo up
export PYTHONPATH=/opt PYTHONDONTWRITEBYTECODE=1 HOME=/tmp PATH=/usr/bin:/bin
/usr/bin/python3.11 /guest.py || echo '{MARK}{{"error": "the guest program failed"}}'
/bin/busybox poweroff -f
"""
QEMU = (
    "qemu-system-aarch64",
    *("-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "2", "-m", "1024"),
    *("-nographic", "-nic", "none", "-no-reboot"),
    *("-icount", "shift=1"),  # one instruction is 2 ns: counts are the same in each run
)
LONGEST_RUN_S = 240


def _apt(directory: Path) -> dict[str, str]:
    """The environment of an apt for arm64 that has its own state, lists and cache; fetches the lists."""
    for part in ("lists/partial", "state", "cache/archives/partial"):
        (directory / part).mkdir(parents=True)
    (directory / "status").touch()
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (directory / "sources").write_text(f"deb [signed-by={keyring}] http://deb.debian.org/debian bookworm main\n")
    lines = [
        'APT::Architecture "arm64";',
        'APT::Architectures { "arm64"; };',
        f'Dir::State "{directory}/state";',
        f'Dir::State::status "{directory}/status";',
        f'Dir::State::lists "{directory}/lists";',
        f'Dir::Cache "{directory}/cache";',
        f'Dir::Etc::sourcelist "{directory}/sources";',
        'Dir::Etc::sourceparts "/dev/null";',
        'APT::Sandbox::User "root";',
        'Acquire::Languages "none";',
    ]
    (directory / "apt.conf").write_text("\n".join(lines) + "\n")
    environment = os.environ | {"APT_CONFIG": str(directory / "apt.conf")}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    return environment


def fetch(directory: Path) -> list[Path]:
    """The packages, the kernel's first."""
    environment = _apt(directory)
    depends = subprocess.run(
        ["apt-cache", "depends", "linux-image-arm64"], env=environment, check=True, capture_output=True, text=True
    ).stdout
    kernel = next(line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line)
    debs = directory / "debs"
    debs.mkdir()
    subprocess.run(["apt-get", "download", "-qq", kernel, *PACKAGES], env=environment, cwd=debs, check=True)
    return sorted(debs.glob("*.deb"), key=lambda deb: not deb.name.startswith("linux-image"))


def build(directory: Path) -> tuple[Path, Path]:
    """The kernel and the initial file system: busybox, Python, msgspec for ARM, and this source tree."""
    kernel_deb, *debs = fetch(directory)
    root = directory / "root"
    for deb in debs:
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
    image = directory / "image"
    image.mkdir()
    files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", kernel_deb], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", image, "--wildcards", "./boot/vmlinuz-*"], stdin=files.stdout, check=True)
    if files.stdout is not None:
        files.stdout.close()
    files.wait()
    _add_product(directory, root)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    shutil.copy(GUEST, root / "guest.py")
    archive = directory / "initrd"
    write_archive(root, archive)
    return next((image / "boot").glob("vmlinuz-*")), archive


def _add_product(directory: Path, root: Path) -> None:
    wheels = directory / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels), "--no-deps"]
    platform = ["--platform", "manylinux2014_aarch64", "--python-version", "3.11", "--only-binary=:all:"]
    subprocess.run([*command, *platform, "msgspec"], check=True)
    for wheel in wheels.glob("*.whl"):
        shutil.unpack_archive(wheel, root / "opt", "zip")
    shutil.copytree(REPOSITORY / "src" / "dynolog", root / "opt" / "dynolog", dirs_exist_ok=True)


def run(kernel: Path, archive: Path) -> list[dict[str, Any]]:
    """What the guest says, one JSON object a line. Raises RuntimeError with its last words when it says nothing."""
    command = [*QEMU, "-kernel", str(kernel), "-initrd", str(archive), "-append", "console=ttyAMA0 quiet rdinit=/init"]
    output = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST_RUN_S, check=True
    ).stdout.decode("utf-8", "replace")
    said = [json.loads(line.partition(MARK)[2]) for line in output.splitlines() if MARK in line]
    if not said or "error" in said[-1]:
        raise RuntimeError(f"the machine failed:\n{output[-8000:]}")
    return said


def main() -> int:
    """Build, run, print."""
    with tempfile.TemporaryDirectory(prefix="pmu-machine-") as name:
        for result in run(*build(Path(name))):
            print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
