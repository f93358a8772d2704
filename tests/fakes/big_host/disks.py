"""The disks of a big host: 32 NVMe and 32 SCSI disks with partitions, loop and ram devices, and what is mounted.

Every counter is linear in the step, so that a test knows each delta.
"""

from pathlib import Path

from fakes.big_host.files import write, write_once

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
NVME = tuple(f"nvme{number}n1" for number in range(32))
SCSI = tuple(f"sd{_LETTERS[number]}" if number < 26 else f"sda{_LETTERS[number - 26]}" for number in range(32))
DISKS = NVME + SCSI


def disk_counters(number: int, step: int) -> tuple[int, ...]:
    """The 17 columns after the name in /proc/diskstats for DISKS[number] at a step; the ninth is requests in flight."""
    factor = step * (number + 1)
    reads = (5_000_000 + factor, 100 + step, 400_000_000 + 8 * factor, 60_000 + 2 * factor)
    writes = (7_000_000 + 2 * factor, 200 + step, 900_000_000 + 32 * factor, 80_000 + 3 * factor)
    queue = (number % 4, 50_000 + 5 * number * step, 140_000 + 5 * factor)
    return reads + writes + queue + (40 + step, 0, 1000 + 16 * step, 20 + step, 30 + 2 * step, 15 + step)


def build_disks(root: Path, step: int) -> None:
    """Write the block device files of a step below `root`."""
    lines = [_line(7, number, f"loop{number}", (0,) * 17) for number in range(8)]
    lines += [_line(1, number, f"ram{number}", (0,) * 17) for number in range(16)]
    for number, name in enumerate(DISKS):
        major = 259 if name in NVME else 8
        counters = disk_counters(number, step)
        lines.append(_line(major, number * 16, name, counters))
        (root / "sys/block" / name).mkdir(parents=True, exist_ok=True)
        for part in (1, 2, 3):
            partition = f"{name}p{part}" if name in NVME else f"{name}{part}"
            lines.append(_line(major, number * 16 + part, partition, tuple(column // 3 for column in counters)))
            write_once(root, f"sys/class/block/{partition}/partition", f"{part}\n")
    write(root, "proc/diskstats", "".join(lines))
    mounts = ["1 0 259:1 / / rw - ext4 /dev/nvme0n1p1 rw", "2 1 0:22 / /proc rw - proc proc rw"]
    for number in range(1, len(DISKS)):
        point = f"/data/{number}"
        (root / point[1:]).mkdir(parents=True, exist_ok=True)
        mounts.append(f"{10 + number} 1 259:{number * 16 + 1} / {point} rw,noatime shared:{number} - xfs /dev/disk rw")
    # The one that answers in this tree: subvolumes are not known by their number.
    (root / "scratch").mkdir(exist_ok=True)
    mounts.append("190 1 0:190 / /scratch rw - btrfs /dev/disk rw")
    mounts += [
        f"{200 + n} 1 0:{200 + n} / /var/lib/docker/overlay2/{n:064x}/merged rw - overlay overlay rw" for n in range(32)
    ]
    write(root, "proc/1/mountinfo", "\n".join(mounts) + "\n")


def _line(major: int, minor: int, name: str, columns: tuple[int, ...]) -> str:
    return f"{major:4d} {minor:7d} {name} " + " ".join(map(str, columns)) + "\n"
