"""A trainer that is a process of its own and does what a test tells it, line by line."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

# Commands on stdin: `poll MASK JOB` prints the answer's text as JSON, `write PATH` writes stdin's next line there as libkineto does
# (temporary name first, then renamed), `start PATH` leaves only the temporary file.
_SCRIPT = r"""
import ctypes, json, os, signal, socket, struct, sys, time, uuid
daemon, claims, newpid, uid = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "newpid", int(sys.argv[4])
if uid:  # only now, because another user may not be allowed to run our interpreter
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if newpid:
    assert ctypes.CDLL(None).unshare(0x20000000) == 0
    inner = os.fork()
    if inner:
        print(inner, flush=True)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 127)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
else:
    print(os.getpid(), flush=True)
pids = claims or [os.getpid(), os.getppid()]
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
place = os.fsencode(os.environ.get("KINETO_IPC_SOCKET_DIR", ""))
def address(name):
    return place + b"/" + name if place else b"\0" + name + b"\0"
sock.bind(address(b"dynoconfigclient" + uuid.uuid4().hex.encode()))
sock.settimeout(10)
def send(message):
    deadline = time.monotonic() + 20
    while True:
        try:
            return sock.sendto(message, address(daemon.encode()))
        except (ConnectionRefusedError, FileNotFoundError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)  # as libkineto does: nobody listens yet
for line in sys.stdin:
    verb, *rest = line.split()
    if verb == "poll":
        payload = struct.pack("=iiq", int(rest[0]), len(pids), int(rest[1])) + struct.pack(f"={len(pids)}i", *pids)
        send(struct.pack("=Q32s", len(payload), b"req") + payload)
        print(json.dumps(sock.recv(1 << 17)[40:].decode()), flush=True)
    elif verb in ("write", "start"):
        with open(rest[0] + ".tmp", "w") as file:
            file.write(sys.stdin.readline())
        if verb == "write":
            os.rename(rest[0] + ".tmp", rest[0])
        print("0", flush=True)
"""


class ScriptedTrainer:
    """One process. `claims` are the pids it says, its true ones when empty; `new_pid_namespace` makes it pid 1 of its own.

    `prefix` is a command that runs it somewhere else (`nsenter`, `setpriv`), with the `python` that is there. With
    KINETO_IPC_SOCKET_DIR in its environment it takes sockets in that directory, as libkineto does.
    """

    def __init__(
        self,
        daemon: str,
        *,
        claims: tuple[int, ...] = (),
        uid: int = 0,
        new_pid_namespace: bool = False,
        environment: Mapping[str, str] = {},
        prefix: Sequence[str] = (),
        python: str = sys.executable,
    ) -> None:
        self.process = subprocess.Popen(
            [
                *prefix,
                python,
                "-c",
                _SCRIPT,
                daemon,
                json.dumps(claims),
                "newpid" if new_pid_namespace else "",
                str(uid),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], **environment},
        )
        self.host_pid = int(self._answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def poll(self, mask: int = 3, job: int = 0) -> str:
        """Poll once; the config it was given."""
        text = self._tell(f"poll {mask} {job}")
        assert isinstance(text, str)
        return text

    def write(self, path: str, text: str) -> None:
        """Write a whole file."""
        self._tell(f"write {path}\n{text}")

    def start(self, path: str, text: str) -> None:
        """Leave the temporary file."""
        self._tell(f"start {path}\n{text}")

    def kill(self) -> None:
        """SIGKILL, and no zombie."""
        self.process.kill()
        self.process.communicate()

    def _tell(self, lines: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(lines + "\n")
        self.process.stdin.flush()
        return json.loads(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the trainer ended"
        return line
