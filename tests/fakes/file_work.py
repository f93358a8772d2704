"""Work on files for processes of their own, which import it by its name."""

import os
import signal

from dynolog.analysis.many import map_files


def ended_by(path: str) -> str:
    """The path, unless it is bad: then this process is ended."""
    if path == "bad":
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def says_its_pid_and_waits(path: str) -> str:
    """Who this is, in a file of that name and `.ready`; it never comes back."""
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    os.rename(path, path + ".ready")
    signal.pause()
    return path


def in_processes(paths: list[str]) -> None:
    """Two of those."""
    list(map_files(says_its_pid_and_waits, paths, processes=2))
