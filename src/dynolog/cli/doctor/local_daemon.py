"""The daemon's process on this machine: what it may do, and what it was started with."""

import os
from collections.abc import Callable, Sequence

import msgspec

from dynolog.ipc.namespace_scan import namespace_inode
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import parse_command_line
from dynolog.sources.process_privileges import Privileges, read_privileges

DEFAULT_FLAG_FILE = "/etc/dynolog.gflags"
_PROGRAMS = ("dynolog", "dynolog.daemon.main")
_NESTED_FILES = 8


class LocalDaemon(msgspec.Struct, frozen=True, kw_only=True):
    """A dynolog that is a process here. `arguments` are its flags as typed, `flags` their values with those of flag files.

    `net_namespace` is an inode number, 0 when it is not ours to see; `cgroup` the text of its /proc/PID/cgroup.
    """

    pid: int
    privileges: Privileges
    arguments: tuple[str, ...]
    flags: dict[str, str]
    net_namespace: int = 0
    directory: str = "/"
    cgroup: str = ""

    def is_on(self, flag: str) -> bool:
        """Whether a flag that is false by default was given as true."""
        return self.flags.get(flag, "false").lower() in ("true", "1", "t", "y", "yes")


def find_local_daemon(host: HostFiles, pid: int) -> LocalDaemon | None:
    """The daemon that says it is `pid`; None when that process is none of ours to see here (a container's, another pid namespace's)."""
    try:
        arguments = flags_of(parse_command_line(host.read(f"proc/{pid}/cmdline")))
        privileges = read_privileges(host, pid)
    except (OSError, ValueError):
        return None
    if arguments is None:
        return None
    try:
        directory = os.readlink(host.path(f"proc/{pid}/cwd"))
    except OSError:  # another user's
        directory = "/"
    return LocalDaemon(
        pid=pid,
        privileges=privileges,
        arguments=arguments,
        flags=flag_values(arguments, lambda path: _text(os.path.join(directory, path))),
        net_namespace=namespace_inode(host.path("proc"), pid),
        directory=directory,
        cgroup=host.read_text(f"proc/{pid}/cgroup") or "",
    )


def flags_of(command: Sequence[str]) -> tuple[str, ...] | None:
    """What stands behind the program's name in a command line; None when it is no dynolog."""
    for place, word in enumerate(command[:6]):
        name = os.path.basename(word)
        if name in _PROGRAMS or (name.startswith("dynolog") and name.endswith(".pyz")):
            return tuple(command[place + 1 :])
    return None


def flag_values(arguments: Sequence[str], read: Callable[[str], str]) -> dict[str, str]:
    """Values by name, the last one counts; flag files stand where they are named, the default one before all when none is.

    Flags are those of gflags: `--name=value`, `--name value`, `--name`, `--noname`. Which flags take a value is not known here, so a
    bare `--name` in front of a word that is no flag has it for its value.
    """
    values: dict[str, str] = {}
    words = list(arguments)
    if not any(_name(word) == "flagfile" for word in words):
        words = [f"--flagfile={DEFAULT_FLAG_FILE}", *words]
    _take(words, read, values, _NESTED_FILES)
    return values


def _take(words: Sequence[str], read: Callable[[str], str], values: dict[str, str], depth: int) -> None:
    for place, word in enumerate(words):
        if not word.startswith("-") or not (name := _name(word)):
            continue
        _, equals, value = word.partition("=")
        if not equals:
            after = words[place + 1] if place + 1 < len(words) else ""
            value = after if after and not after.startswith("-") else "true"
        if name == "flagfile":
            for line in read(value).splitlines() if depth else ():
                _take(line.split(maxsplit=1), read, values, depth - 1)
        elif name.startswith("no") and not equals and value == "true":
            values[name[2:]] = "false"
        else:
            values[name] = value


def _name(word: str) -> str:
    return word.lstrip("-").partition("=")[0].replace("-", "_")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:  # not there, or not ours to read
        return ""
