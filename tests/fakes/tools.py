"""Stand-ins for the programs that find hosts: small shell scripts in a directory that is the whole PATH of a test."""

import shlex
from pathlib import Path

SHELL = "/bin/sh"


class Tools:
    """A directory of programs; each notes its arguments, so that a test sees what it was asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)

    def put(self, name: str, stdout: str = "", stderr: str = "", exit_code: int = 0, script: str = "") -> str:
        """A program that prints this and ends; or any `script` of the shell. Returns its path."""
        calls = shlex.quote(str(self.directory / f"{name}.calls"))
        output = self.directory / f"{name}.stdout"
        output.write_text(stdout)
        # Built-ins only: nothing else is on the PATH.
        copy = (
            f'while IFS= read -r line || [ -n "$line" ]; do printf "%s\\n" "$line"; done < {shlex.quote(str(output))}'
        )
        body = script or f"{copy}\nprintf '%s' {shlex.quote(stderr)} >&2\nexit {exit_code}"
        path = self.directory / name
        path.write_text(f'#!{SHELL}\nprintf "%s\\n" "$*" >> {calls}\n{body}\n')
        path.chmod(0o755)
        return str(path)

    def calls(self, name: str) -> list[str]:
        """The arguments of each call, joined by blanks."""
        path = self.directory / f"{name}.calls"
        return path.read_text().splitlines() if path.exists() else []
