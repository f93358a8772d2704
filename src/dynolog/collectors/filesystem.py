"""Size, free space and inodes of mounted file systems."""

import errno
import os
import time
from collections.abc import Callable
from functools import partial

import msgspec

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.flag import Flag
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.errand import Errand
from dynolog.sources.mount_choice import Choice, choose_mounts
from dynolog.sources.mountinfo import Mount, MountReader
from dynolog.sources.statvfs import FilesystemUse, filesystem_use


def _level(name: str, unit: str, description: str, kind: Kind = Kind.GAUGE) -> Metric:
    return Metric(name=name, scope=Scope.FILESYSTEM, kind=kind, unit=unit, description=description)


METRICS = (
    _level("filesystem_size_bytes", "By", "Size of a file system"),
    _level("filesystem_free_bytes", "By", "Free space of a file system, what is reserved for root included"),
    _level("filesystem_available_bytes", "By", "Space of a file system that ordinary users may still fill"),
    _level(
        "filesystem_util",
        "%",
        "Used share of the space of a file system that ordinary users may fill, as df shows it",
        Kind.RATIO,
    ),
    _level("filesystem_inodes", "{inode}", "Inodes of a file system, where their number is fixed"),
    _level("filesystem_inodes_free", "{inode}", "Free inodes of a file system, where their number is fixed"),
    _level("filesystem_inodes_util", "%", "Used share of the inodes of a file system", Kind.RATIO),
    _level("filesystem_read_only", "1", "1 when a file system is mounted read-only or has fallen back to that, else 0"),
    _level("filesystem_responding", "1", "1 when a file system answered, 0 while it does not (a dead server) or fails"),
)
EXCLUDE_TYPES = Flag(
    name="filesystem_exclude_types",
    default="erofs,iso9660,squashfs,fuse.snapfuse",
    help="leave out file systems of these types, a comma list; those of the kernel itself (proc, sysfs...) always are",
    section="collectors",
    live=True,
)
EXCLUDE_MOUNTS = Flag(
    name="filesystem_exclude_mounts",
    default="/run/credentials,/run/netns,/run/user,/run/containerd,/var/lib/containerd,/var/lib/containers,"
    "/var/lib/docker,/var/lib/kubelet/pods,/snap",
    help="leave out what is mounted at or below these directories, a comma list",
    section="collectors",
    live=True,
)
# The path is not for us (another namespace, no permission): not a fault of the file system.
_NOT_OURS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP)


class FilesystemSnapshot(msgspec.Struct, frozen=True):
    """What answered, by mount point; None for one that hangs or fails. `read_only` are the mount points that are.

    Read-only is what the host's process 1 says: below /host in a container everything is mounted read-only.
    """

    uses: dict[str, FilesystemUse | None]
    read_only: frozenset[str]


class FilesystemCollector:
    """Asks every file system; one that may hang is asked on its own thread, and not again until it has returned."""

    LARGEST_NUMBER = 256
    ANSWER_WITHIN_S = 0.5

    def __init__(self, context: Context, ask: Callable[[str], FilesystemUse] = filesystem_use) -> None:
        self._host = context.host
        self._settings = context.settings
        self._notices = context.notices
        self._ask = ask
        self._reader = MountReader(context.host)
        self._mounts: list[Mount] | None = None
        self._excluded: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._choices: list[tuple[Choice, str]] = []
        self._read_only: frozenset[str] = frozenset()
        self._errands: dict[tuple[int, str], Errand[FilesystemUse]] = {}
        self._silent: set[str] = set()
        self._keys: dict[str, tuple[str, ...]] = {}

    def read(self) -> FilesystemSnapshot:
        """One look at every chosen mount; waits at most ANSWER_WITHIN_S for all that may hang together."""
        self._choose()
        asked = [(choice, self._send(choice, path)) for choice, path in self._choices if choice.may_hang]
        uses: dict[str, FilesystemUse | None] = {}
        for choice, path in self._choices:
            if not choice.may_hang:
                self._keep(uses, choice, partial(self._ask, path))
        deadline_s = time.monotonic() + self.ANSWER_WITHIN_S
        for choice, errand in asked:
            # None: it was still at the last question, so there is nothing to wait for.
            if errand is not None and errand.wait(deadline_s - time.monotonic()):
                self._keep(uses, choice, errand.take)
            else:
                uses[choice.mount.point] = None
                self._say(choice.mount, "does not answer: its server may be down; it is left out until it does")
        if self._choices and not uses and self._host.root != "/":
            self._notices.say(
                "filesystem_unseen",
                f"no file system of the host is seen below {self._host.root}: mount its root directory there (-v /:/host:ro,rslave)",
            )
        return FilesystemSnapshot(uses, self._read_only)

    def _choose(self) -> None:
        mounts = self._reader.read()
        excluded = (self._settings.names(EXCLUDE_TYPES.name), self._settings.names(EXCLUDE_MOUNTS.name))
        if mounts is self._mounts and excluded == self._excluded:
            return
        self._mounts, self._excluded = mounts, excluded
        points = tuple(point.rstrip("/") or "/" for point in excluded[1])
        choices = choose_mounts(mounts, frozenset(excluded[0]), points)
        if len(choices) > self.LARGEST_NUMBER:
            self._notices.say(
                "filesystem_too_many",
                f"more than {self.LARGEST_NUMBER} file systems are mounted: only those with the shortest paths are measured; "
                f"leave some out with --{EXCLUDE_MOUNTS.name}",
            )
        choices = choices[: self.LARGEST_NUMBER]
        self._choices = [(choice, self._host.path(choice.mount.point.lstrip("/"))) for choice in choices]
        self._read_only = frozenset(choice.mount.point for choice in choices if choice.mount.read_only)
        for point in self._silent - {choice.mount.point for choice in choices}:
            self._silent.discard(point)
            self._notices.say(f"filesystem {point}", f"{shown(point)} is not mounted any more")
        # A call that hangs is kept though its mount has gone, so that mounting again and again cannot pile them up.
        kept = {(choice.mount.device, choice.mount.point) for choice in choices}
        self._errands = {key: errand for key, errand in self._errands.items() if key in kept or errand.running}

    def _send(self, choice: Choice, path: str) -> Errand[FilesystemUse] | None:
        key = (choice.mount.device, choice.mount.point)
        errand = self._errands.get(key)
        if errand is None:
            if len(self._errands) >= 2 * self.LARGEST_NUMBER:
                return None
            errand = self._errands[key] = Errand("statvfs", lambda: self._ask(path))
        return errand if errand.start() else None

    def _keep(
        self,
        uses: dict[str, FilesystemUse | None],
        choice: Choice,
        answer: Callable[[], FilesystemUse | None],
    ) -> None:
        mount = choice.mount
        try:
            use = answer()
        except OSError as error:
            if error.errno not in _NOT_OURS:
                uses[mount.point] = None
                self._say(mount, f"fails: {error.strerror}")
            return
        # Another device at the path: the mount is not visible from here, and what is there is measured elsewhere.
        if use is not None and (use.device == mount.device or not choice.numbered):
            uses[mount.point] = use
            if mount.point in self._silent:
                self._say(mount, "answers again")
                self._silent.discard(mount.point)

    def _say(self, mount: Mount, what: str) -> None:
        self._silent.add(mount.point)
        self._notices.say(f"filesystem {mount.point}", f"{shown(mount.point)} ({mount.kind}) {what}")

    def compute(self, before: FilesystemSnapshot, after: FilesystemSnapshot, elapsed_s: float) -> Values:  # noqa: ARG002 - levels
        """Levels of the later reading."""
        values: Values = {}
        for point, use in after.uses.items():
            keys = self._keys.get(point) or self._make_keys(point)
            values[keys[8]] = 0 if use is None else 1
            if use is not None:
                _add_use(values, keys, use)
                values[keys[7]] = int(point in after.read_only)
        return values

    def _make_keys(self, point: str) -> tuple[str, ...]:
        if len(self._keys) > 4 * self.LARGEST_NUMBER:  # mounts that come and go must not fill memory
            self._keys.clear()
        keys = self._keys[point] = tuple(metric.key(shown(point)) for metric in METRICS)
        return keys


def shown(point: str) -> str:
    """A mount point as text that every exporter can carry; bytes that are no UTF-8 as escapes."""
    return os.fsencode(point).decode("utf-8", "backslashreplace")


def _add_use(values: Values, keys: tuple[str, ...], use: FilesystemUse) -> None:
    if use.size_bytes > 0:
        values[keys[0]] = use.size_bytes
        values[keys[1]] = use.free_bytes
        values[keys[2]] = use.available_bytes
        used = use.size_bytes - use.free_bytes
        if used >= 0 and used + use.available_bytes > 0:
            values[keys[3]] = 100 * used / (used + use.available_bytes)
    if use.inodes > 0:
        values[keys[4]] = use.inodes
        values[keys[5]] = use.inodes_free
        if 0 <= use.inodes_free <= use.inodes:
            values[keys[6]] = 100 * (use.inodes - use.inodes_free) / use.inodes


SPEC = CollectorSpec(
    name="filesystem",
    summary="size, free space and inodes of mounted file systems",
    needs="/proc/self/mountinfo, statvfs(3)",
    factory=FilesystemCollector,
    metrics=METRICS,
    flags=(EXCLUDE_TYPES, EXCLUDE_MOUNTS),
    # Sizes change slowly, and every question may cost a server something.
    shortest_interval_s=10.0,
)
