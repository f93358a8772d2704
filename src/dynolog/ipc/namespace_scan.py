"""Which network namespaces hold trainers, from /proc, without looking at every process each time (network_namespaces(7))."""

import os
from collections.abc import Collection

import msgspec

# What a trainer's socket is called in /proc/PID/net/unix: @ stands for the NUL of an abstract name.
_TRAINER_MARK = b"@dynoconfigclient"
# A namespace without trainers is looked at after 1, 2, 4 and then every 6 scans; at once when a process appears in it.
_LONGEST_WAIT_SCANS = 6


class ScanResult(msgspec.Struct, frozen=True):
    """`found` maps the inode of each namespace that has trainers to one process in it; `emptied` have no process left."""

    found: dict[int, int]
    emptied: tuple[int, ...]


class _Pause(msgspec.Struct):
    scans_left: int = 0
    next_wait: int = 1
    refused: bool = False


class NamespaceScan:
    """Remembers which process is in which network namespace; each `update` reads only what is new.

    A process is placed when it is first seen and once more at the next scan, because a container runtime moves a process after
    it has started. One process of each namespace is checked every time, so that a reused pid or a zombie keeps none alive.
    Reads below `proc`, the procfs of the daemon's own pid namespace; `own` is the inode of the namespace that needs no looking after.
    """

    def __init__(self, proc: str, own: int) -> None:
        self._proc = proc
        self._own = own
        self._namespace_of: dict[int, int] = {}
        self._fresh: set[int] = set()
        self._members: dict[int, set[int]] = {}
        self._pauses: dict[int, _Pause] = {}

    def update(self, joined: Collection[int]) -> ScanResult:
        """One scan; namespaces in `joined` are not looked into again. Raises OSError when /proc cannot be listed."""
        before = set(self._members)
        present = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        for pid in self._namespace_of.keys() - present:
            self._forget(pid)
        unseen = present - self._namespace_of.keys()
        for pid in unseen | (self._fresh & present):
            self._place(pid)
        self._fresh = unseen
        for inode in tuple(self._members):
            self._check_one(inode)
        emptied = before - self._members.keys()
        for inode in self._pauses.keys() - self._members.keys():
            del self._pauses[inode]
        return ScanResult(self._look(joined), tuple(sorted(emptied)))

    def pause(self, inode: int) -> None:
        """A namespace that was found cannot be joined now: come back to it after the longest wait."""
        self._pauses[inode] = _Pause(_LONGEST_WAIT_SCANS - 1, _LONGEST_WAIT_SCANS, refused=True)

    def _place(self, pid: int) -> None:
        inode = namespace_inode(self._proc, pid)
        if self._namespace_of.get(pid) == inode:
            return
        self._forget(pid)
        self._namespace_of[pid] = inode
        if inode not in (0, self._own):
            self._members.setdefault(inode, set()).add(pid)
            if inode not in self._pauses or not self._pauses[inode].refused:
                self._pauses[inode] = _Pause()

    def _forget(self, pid: int) -> None:
        inode = self._namespace_of.pop(pid, 0)
        if members := self._members.get(inode):
            members.discard(pid)
            if not members:
                del self._members[inode]

    def _check_one(self, inode: int) -> None:
        while members := self._members.get(inode):
            pid = next(iter(members))
            self._place(pid)
            if pid in members:
                return

    def _look(self, joined: Collection[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for inode, members in self._members.items():
            if inode in joined:
                continue
            pause = self._pauses[inode]
            if pause.scans_left > 0:
                pause.scans_left -= 1
                continue
            pid = next(iter(members))
            if holds_trainers(self._proc, pid):
                found[inode] = pid
            pause.scans_left = pause.next_wait - 1
            pause.next_wait = min(pause.next_wait * 2, _LONGEST_WAIT_SCANS)
        return found


def namespace_inode(proc: str, pid: int | str) -> int:
    """The inode of a process's network namespace (`net:[4026531840]`); 0 when it has ended or may not be looked at."""
    try:
        link = os.readlink(f"{proc}/{pid}/ns/net")
        return int(link[link.index("[") + 1 : -1])
    except (OSError, ValueError):
        return 0


def holds_trainers(proc: str, pid: int) -> bool:
    """Whether some process in the network namespace of `pid` has a socket of the kind that trainers make."""
    try:
        with open(f"{proc}/{pid}/net/unix", "rb") as table:
            return _TRAINER_MARK in table.read()
    except OSError:
        return False
