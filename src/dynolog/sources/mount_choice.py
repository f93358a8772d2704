"""Which mounts are worth measuring, and which of them may hang."""

from collections.abc import Collection, Mapping

import msgspec

from dynolog.sources.mountinfo import Mount

# fmt: off
# They hold no data: views of the kernel, and autofs, which would mount something when asked.
PSEUDO_KINDS = frozenset((
    "anon_inodefs", "autofs", "bdev", "bpf", "binder", "binfmt_misc", "cgroup", "cgroup2", "configfs",
    "cpuset", "debugfs", "devpts", "devtmpfs", "efivarfs", "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.portal",
    "fusectl", "hugetlbfs", "mqueue", "nfsd", "nsfs", "pipefs", "proc", "pstore", "ramfs", "resctrl",
    "rootfs", "rpc_pipefs", "securityfs", "selinuxfs", "smackfs", "sockfs", "sysfs", "tracefs", "xenfs",
))
# What is mounted in there hides or holds parts of the kernel's own trees (cgroup version 1, masks of containers).
_KERNEL_TREES = ("/proc", "/sys")
# Their size is known in this kernel's memory, so asking does not wait for a server or a process; any other kind may hang.
LOCAL_KINDS = frozenset((
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfs", "hfsplus", "iso9660", "jfs",
    "minix", "msdos", "nilfs2", "ntfs3", "overlay", "reiserfs", "squashfs", "tmpfs", "udf", "ufs", "vfat",
    "xfs", "zfs",
))
# fmt: on
# What stat(2) says at the mount point is the number in mountinfo, so that it can be told whether another file system is found there.
# (btrfs and bcachefs number each subvolume, overlay answers for its layers, cluster file systems make numbers up.)
NUMBERED_KINDS = (LOCAL_KINDS - {"bcachefs", "btrfs", "overlay"}) | {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs"}


class Choice(msgspec.Struct, frozen=True):
    """A mount to measure. `may_hang`: asking may wait for a server; `numbered`: stat gives `mount.device` there."""

    mount: Mount
    may_hang: bool
    numbered: bool


def choose_mounts(
    mounts: Collection[Mount], exclude_kinds: frozenset[str] = frozenset(), exclude_points: tuple[str, ...] = ()
) -> list[Choice]:
    """One mount for each file system with data, shortest mount point first.

    Mounts that lie hidden below a later one are left out. A file system mounted in several places (bind mounts,
    subvolumes) is measured at the shortest.
    """
    top = {mount.point: mount for mount in mounts}
    by_number = {mount.number: mount for mount in mounts}
    chosen: dict[int, Choice] = {}
    for mount in sorted(top.values(), key=lambda mount: (len(mount.point), mount.point)):
        if mount.kind in PSEUDO_KINDS or mount.kind in exclude_kinds or mount.device in chosen:
            continue
        above = ancestors(mount.point)
        if any(point in above or point == mount.point for point in (*_KERNEL_TREES, *exclude_points)):
            continue
        if not is_hidden(mount, above, top, by_number):
            may_hang = not is_local(mount) or any(point in top and not is_local(top[point]) for point in above)
            numbered = mount.kind in NUMBERED_KINDS or mount.kind.startswith("fuse")
            chosen[mount.device] = Choice(mount, may_hang, numbered)
    return list(chosen.values())


def is_local(mount: Mount) -> bool:
    """Whether a path through this mount waits for nobody but this kernel."""
    return mount.kind in LOCAL_KINDS or mount.kind in PSEUDO_KINDS


def ancestors(point: str) -> list[str]:
    """The directories above a path, nearest first: "/a/b" → ["/a", "/"]."""
    above: list[str] = []
    while point not in ("/", ""):
        point = point.rpartition("/")[0] or "/"
        above.append(point)
    return above


def is_hidden(mount: Mount, above: list[str], top: Mapping[str, Mount], by_number: Mapping[int, Mount]) -> bool:
    """Whether another mount, made later on a directory above, hides this one: the nearest one above is not what it was mounted on."""
    seen: set[int] = set()
    while (parent := by_number.get(mount.parent)) is not None and parent.point == mount.point:
        if mount.number in seen:  # a file that no kernel wrote
            return True
        seen.add(mount.number)
        mount = parent
    nearest = next((top[point] for point in above if point in top), None)
    return nearest is not None and parent is not None and nearest.number != parent.number
