"""A /proc that a test writes, process by process."""

import os
from collections.abc import Sequence
from pathlib import Path

from dynolog.sources.host_files import HostFiles


class ProcTree:
    """Processes below `root`/proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = HostFiles(str(root))
        (root / "proc").mkdir(parents=True, exist_ok=True)

    def process(
        self,
        pid: int,
        *,
        name: str = "python",
        start: int = 100,
        parent: int = 1,
        state: str = "S",
        uid: int = 1000,
        cgroup: str = "0::/\n",
        environ: str | None = "",
        files: Sequence[str] = (),
    ) -> None:
        """A process, or a new one with its pid; `environ` is comma-separated, None: not to be read; `files` are what is open."""
        directory = self.root / f"proc/{pid}"
        self.end(pid)
        (directory / "fd").mkdir(parents=True)
        self._write(pid, "stat", f"{pid} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0")
        self._write(pid, "status", f"Name:\t{name}\nUid:\t{uid}\t0\t0\t0\n")
        self._write(pid, "cgroup", cgroup)
        if environ is not None:
            self._write(pid, "environ", environ.replace(",", "\0"))
        for number, target in enumerate(files):
            (directory / f"fd/{number}").symlink_to(target)

    def end(self, pid: int) -> None:
        """It ends."""
        directory = self.root / f"proc/{pid}"
        for path in sorted(directory.rglob("*"), key=lambda path: -len(path.parts)):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
        if directory.exists():
            directory.rmdir()

    def write(self, path: str, text: str) -> None:
        """Any file below the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _write(self, pid: int, name: str, text: str) -> None:
        (self.root / f"proc/{pid}/{name}").write_bytes(os.fsencode(text))
