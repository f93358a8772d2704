"""Real processes, each in a network namespace of its own, that stand in for containers. Needs root."""

import os
import subprocess
import sys
import threading
from types import TracebackType
from typing import Self

# argv: how many children, the daemon's IPC name, the client's name, "poll" to act as a trainer, "newpid" for pid namespaces.
_SCRIPT = """
import ctypes, os, signal, socket, struct, sys, time
count, daemon, client, act, newpid = int(sys.argv[1]), *sys.argv[2:6]
libc = ctypes.CDLL(None, use_errno=True)
flags = 0x40000000 | (0x20000000 if newpid == "newpid" else 0)
children = []

def poll(sock):
    request = struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, os.getpid())
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            sock.sendto(request, b"\\0" + daemon.encode() + b"\\0")
            return sock.recv(4096)[40:].decode()
        except ConnectionRefusedError:
            time.sleep(0.01)  # as libkineto does: nobody listens yet
    return "nobody answered"

def live(ready):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.settimeout(10)
    sock.bind(b"\\0" + client.encode() + b"\\0")
    os.write(ready, b"x")
    if act == "poll":
        print(os.getpid(), poll(sock), flush=True)
    while True:
        signal.pause()

out, ready = os.pipe()
for number in range(count):
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, signal.SIGKILL)
        if libc.unshare(flags) != 0:
            os._exit(1)
        if newpid == "newpid":
            inner = os.fork()
            if inner:
                os.waitpid(inner, 0)
                os._exit(0)
            libc.prctl(1, signal.SIGKILL)
        live(ready)
    children.append(pid)
for number in range(count):
    os.read(out, 1)
print("ready", flush=True)
sys.stdin.read()
for pid in children:
    os.kill(pid, signal.SIGKILL)
for pid in children:
    os.waitpid(pid, 0)
"""


class NamespaceChildren:
    """`count` processes in as many network namespaces; all have bound their client socket on entry, and are reaped on exit."""

    def __init__(
        self,
        count: int,
        daemon: str,
        client: str = "dynoconfigclient-x",
        poll: bool = False,
        pid_namespace: bool = False,
    ) -> None:
        arguments = (str(count), daemon, client, "poll" if poll else "wait", "newpid" if pid_namespace else "same")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SCRIPT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        lines = []
        while (line := self.read_line()) != "ready":
            assert line, "the children could not be started"
            lines.append(line)
        self._early = lines
        return self

    def read_line(self) -> str:
        """The next line that a child wrote: its own pid, and what it was answered."""
        assert self._process.stdout
        return self._process.stdout.readline().decode().strip()

    def answer(self) -> str:
        """The next answer line, which may have come before all children were there."""
        return self._early.pop(0) if self._early else self.read_line()

    def end(self) -> None:
        """Kill all and wait until they are reaped."""
        self._process.communicate()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.end()


def network_namespaces_of_threads() -> set[str]:
    """The namespaces that the running threads of this process are in; one that has returned may take a moment to vanish."""
    return {os.readlink(f"/proc/self/task/{thread.native_id}/ns/net") for thread in threading.enumerate()}
