"""`dyno` as a real process, as a user has it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

DYNO = Path(sys.executable).with_name("dyno")


def run_dyno(*arguments: str, timeout_s: float = 20.0) -> subprocess.CompletedProcess[str]:
    """Run it to its end, without a terminal."""
    return subprocess.run([str(DYNO), *arguments], capture_output=True, text=True, timeout=timeout_s, check=False)


def start_dyno(*arguments: str) -> subprocess.Popen[str]:
    """Start it; its output is piped."""
    return subprocess.Popen([str(DYNO), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_on_terminal(*arguments: str, rows: int = 24, columns: int = 100) -> tuple[int, str]:
    """Run it on a terminal of its own; its exit code and all that the terminal was sent."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execv(DYNO, [str(DYNO), *arguments])
    output = b""
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not block:
            break
        output += block
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.decode()
