"""The directories that the daemon and the traces need: room, and the right to write."""

import os
from collections.abc import Iterator

import msgspec

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, ok, wrong
from dynolog.cli.doctor.patience import look_at_each
from dynolog.cli.quantities import size
from dynolog.sources.process_privileges import Privileges

_LITTLE_BYTES = 256 << 20
_FEW_INODES = 100


class Place(msgspec.Struct, frozen=True):
    """A file or directory, what it is for, and the flag that moves it; `written_by_daemon` else by the traced processes."""

    path: str
    use: str
    remedy: str
    written_by_daemon: bool = True


class Room(msgspec.Struct, frozen=True):
    """What is there. `nearest` is the path or the nearest directory above it that exists."""

    nearest: str
    info: os.stat_result
    free_bytes: int
    free_inodes: int | None


def check_places(evidence: Evidence) -> Iterator[Finding]:
    """Each place once; one whose file system does not answer holds up no other."""
    places = {place.path: place for place in places_of(evidence)}
    looks = look_at_each(places, room_at)
    for path, place in places.items():
        if path in looks.hanging:
            yield wrong("disk", f"{path} ({place.use}) does not answer: its file system is dead", place.remedy)
        elif (room := looks.answers.get(path)) is not None:
            yield judge(place, room, evidence.rights, evidence.who)


def places_of(evidence: Evidence) -> Iterator[Place]:
    """Where the running daemon writes, and where traces go by default."""
    yield Place("/tmp", "traces, unless --log-file says otherwise", "make room, or another --log-file", False)  # noqa: S108
    if evidence.daemon is None:
        return
    for flag, use in (("log_file", "the log"), ("spool_dir", "the spool of the exporters")):
        if path := evidence.daemon.flags.get(flag, ""):
            yield Place(os.path.join(evidence.daemon.directory, path), use, f"make room, or another --{flag}")


def room_at(path: str) -> Room:
    """Raises OSError when nothing of the path is there. May hang on a dead file system."""
    nearest = path
    while not os.path.lexists(nearest) and nearest != "/":
        nearest = os.path.dirname(nearest)
    info, space = os.stat(nearest), os.statvfs(nearest)
    return Room(nearest, info, space.f_bavail * space.f_frsize, space.f_favail if space.f_files else None)


def judge(place: Place, room: Room, rights: Privileges, who: str) -> Finding:
    """Room first, then rights."""
    if room.free_bytes < _LITTLE_BYTES:
        return wrong("disk", f"{place.path} ({place.use}) has {size(room.free_bytes)} left", place.remedy)
    if room.free_inodes is not None and room.free_inodes < _FEW_INODES:
        return wrong("disk", f"{place.path} ({place.use}) has room for {room.free_inodes} more files", place.remedy)
    wanted = os.W_OK | (os.X_OK if os.path.isdir(room.nearest) else 0)
    if place.written_by_daemon and not rights.may(room.info, wanted):
        return wrong(
            "disk",
            f"{who} (uid {rights.uid}) may not write {place.path} ({place.use})",
            f"chown its user to {room.nearest}, or {place.remedy.partition(', or ')[2]}",
        )
    return ok("disk", f"{place.path} ({place.use}) has {size(room.free_bytes)} left")
