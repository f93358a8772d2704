"""Run by itself, never imported by the daemon: whether trainers may write where they are asked to.

`python -I -S destination_probe.py make|look` reads on its standard input, marshalled, a list of (index, host_pid, uid, gid, view, path),
and writes a line `index<TAB>sentence` for each, the sentence empty when nothing stands against it. A process of its own, started by exec,
because it takes the trainer's root, groups and uid, which a thread cannot, and because a fork of the daemon with its threads would be no
safe place to run anything. Groups of trainers with the same rights and directory get one fork each here, where there are no threads; one
process, whose rights are read now, speaks for all of its group.
"""

import errno
import marshal
import os
import stat
import sys

# A trace of a few seconds fits; with less the file would be torn.
MIN_FREE_BYTES = 16 << 20
# From so many files in one directory on it is read as a whole, as long as it holds at most so many times their number.
_MANY = 32
_LARGE = 8

# `view`: equal texts of one user stand for equal roots, mounts and groups (sources.process_view); "" is not known.
Item = tuple[int, int, int, int, str, str]


class Refused(Exception):  # noqa: N818 - an answer, and this script imports nothing of ours
    """Why a trainer cannot write there."""


def groups_of(host_pid: int) -> list[int]:
    """Supplementary groups of a process, from proc_pid_status(5)."""
    with open(f"/proc/{host_pid}/status", "rb") as status:
        for line in status:
            if line.startswith(b"Groups:"):
                return [int(group) for group in line[7:].split()]
    return []


def root_of(host_pid: int) -> tuple[object, ...]:
    """What tells one root from another: its mount namespace and its directory."""
    root = os.stat(f"/proc/{host_pid}/root")
    return os.readlink(f"/proc/{host_pid}/ns/mnt"), root.st_dev, root.st_ino


def become(host_pid: int, uid: int, gid: int, groups: list[int]) -> bool:
    """Take the trainer's root, groups, gid and uid; False when that is not allowed and nothing can be said."""
    try:
        os.chroot(f"/proc/{host_pid}/root")
        os.chdir("/")
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except PermissionError:
        # Not root: our own processes that see the same files can still be spoken for.
        return os.geteuid() == uid != 0 and root_of(host_pid) == root_of(os.getpid())
    return True


def become_one_of(items: list[Item], groups: list[int]) -> bool:
    """Take the rights of the first process that is still there: all of them have the same."""
    for _, host_pid, uid, gid, *_ in items[:-1]:
        try:
            return become(host_pid, uid, gid, groups)
        except (FileNotFoundError, ProcessLookupError):
            continue
    _, host_pid, uid, gid, *_ = items[-1]
    return become(host_pid, uid, gid, groups)


def check_directory(directory: str, make_missing: bool) -> None:
    """The directory is there, or can be made, and takes a file. It is made only with `make_missing`."""
    try:
        if not make_missing and not os.path.lexists(directory):
            # What is there of its path would have to take the rest of it.
            while not os.path.lexists(directory):
                directory = os.path.dirname(directory)
        elif make_missing:
            os.makedirs(directory, exist_ok=True)
        info = os.stat(directory)
    except FileExistsError:
        raise Refused(f"{directory} is not a directory: choose another path") from None
    except NotADirectoryError:
        raise Refused(f"a part of {directory} is not a directory: choose another path") from None
    except OSError as error:
        raise Refused(
            f"{directory} does not exist and the trainer cannot make it ({reason(error)}): choose another directory"
        ) from None
    if not stat.S_ISDIR(info.st_mode):
        raise Refused(f"{directory} is not a directory: choose another path")
    try:
        # Nothing is left behind, whatever happens to us.
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        supported = error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
        if supported or not os.access(directory, os.W_OK | os.X_OK):
            raise Refused(
                f"the trainer may not write in {directory} ({reason(error) if supported else 'no permission'}): {remedy(error)}"
            ) from None
        if not os.statvfs(directory).f_blocks:
            try_file(directory)
    space = os.statvfs(directory)
    free = space.f_bavail * space.f_frsize
    if space.f_blocks and free < MIN_FREE_BYTES:
        raise Refused(f"only {free >> 10} KiB are free in {directory}: make room or choose another directory")


def try_file(directory: str) -> None:
    """A file system without blocks and unnamed files is one of the kernel's (sysfs, cgroup): only a try says whether it takes a file."""
    name = f"{directory}/.dynolog-{os.getpid()}"
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(name)
    except OSError as error:
        raise Refused(f"no file can be made in {directory} ({reason(error)}): choose another directory") from None


def names_in(directory: str, most: int) -> set[str] | None:
    """What stands in a directory: cheaper than two looks for each of thousands of files. None when unreadable, or more than `most`."""
    names = set()
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                names.add(entry.name)
                if len(names) > most:
                    return None
    except OSError:
        return None
    return names


def check_file(path: str, uid: int) -> None:
    """Nothing stands where the trace, or its temporary file, will be."""
    for name in (path, path + ".tmp"):
        try:
            info = os.lstat(name)
        except OSError:
            continue
        if not stat.S_ISREG(info.st_mode):
            raise Refused(f"{name} exists and is not a regular file: choose another name")
        if uid not in (0, info.st_uid):
            raise Refused(f"{name} exists and belongs to user {info.st_uid}: choose another name")


def reason(error: OSError) -> str:
    """The kernel's word, in lower case."""
    return (error.strerror or str(error)).lower()


def remedy(error: OSError) -> str:
    """What to do about a directory that takes no file."""
    if error.errno == errno.EROFS:
        return "choose a directory on a file system that is not read-only"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room or choose another directory"
    return "choose a directory that its user may write"


def answer(answers: list[tuple[int, str]]) -> None:
    """Write lines, in pieces that the kernel does not mix with those of others (pipe(7): up to PIPE_BUF bytes)."""
    piece = b""
    for index, sentence in answers:
        line = f"{index}\t{sentence}".replace("\n", " ").encode("utf-8", "replace")[:2000] + b"\n"
        if len(piece) + len(line) > 4096:
            os.write(1, piece)
            piece = b""
        piece += line
    os.write(1, piece)


def check_group(items: list[Item], groups: list[int], make_missing: bool) -> None:
    """All files of one directory and user, as that user."""
    directory = os.path.dirname(items[0][-1]) or "/"
    spoken_for = become_one_of(items, groups)
    verdict = ""
    if spoken_for:
        try:
            check_directory(directory, make_missing)
        except Refused as refused:
            verdict = str(refused)
    there = names_in(directory, len(items) * _LARGE) if spoken_for and len(items) >= _MANY else None
    answers = []
    for index, _, uid, *_, file in items:
        sentence = verdict
        name = os.path.basename(file)
        if spoken_for and not sentence and (there is None or name in there or name + ".tmp" in there):
            try:
                check_file(file, uid)
            except Refused as refused:
                sentence = str(refused)
        answers.append((index, sentence))
    answer(answers)


def grouped(items: list[Item]) -> dict[tuple[object, ...], tuple[list[Item], list[int]]]:
    """Items by what decides the answer, the process first whose rights were read. One that has just gone gets no verdict: others notice."""
    by_rights: dict[tuple[object, ...], tuple[list[Item], list[int]]] = {}
    known: dict[object, tuple[tuple[object, ...], list[int]]] = {}
    for item in items:
        index, host_pid, uid, gid, view, path = item
        # Reading the rights of each of thousands takes longer than all the rest.
        alike = (uid, gid, view) if view else host_pid
        try:
            if alike not in known:
                known[alike] = root_of(host_pid), groups_of(host_pid)
        except OSError:
            answer([(index, "")])
            continue
        root, groups = known[alike]
        key = (root, uid, gid, tuple(groups), os.path.dirname(path))
        by_rights.setdefault(key, ([], groups))[0].append(item)
    return by_rights


def main() -> None:
    """Answer for all, each group in a process of its own: one that hangs on a dead file system holds up no other."""
    make_missing = sys.argv[1:] == ["make"]
    items: list[Item] = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - from our parent
    work = grouped(items)
    # From here on nothing is imported: the files below the new root are another user's.
    sys.path.clear()
    sys.meta_path.clear()
    for members, groups in work.values():
        if os.fork() == 0:
            try:
                check_group(members, groups, make_missing)
            except OSError as error:
                sentence = f"its files cannot be looked at ({reason(error)}): is the trainer still there?"
                answer([(index, sentence) for index, *_ in members])
            finally:
                os._exit(0)


if __name__ == "__main__":
    main()
