"""Real processes with another root or user, as trainers have."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

_SCRIPT = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
root, groups, uid, unshare = sys.argv[1:]
if unshare:
    CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
    assert libc.unshare(CLONE_NEWNS) == 0
    assert libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
    source, target, kind, options, flags = unshare.split(";")
    assert libc.mount(source.encode(), target.encode(), kind.encode(), int(flags), options.encode()) == 0
if root:
    os.chroot(root)
    os.chdir("/")
if groups:
    os.setgroups([int(group) for group in groups.split(",")])
if uid != "-1":
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
# A process started by its user is dumpable; one that changed its uid is not, and then its own user may not look at it.
PR_SET_DUMPABLE = 4
libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
os.write(1, b"ready")
sys.stdin.buffer.read()
"""


@contextlib.contextmanager
def process_with(*, root: str = "", uid: int = -1, groups: str = "", mount: str = "") -> Iterator[int]:
    """The pid of a process that has `root`, `uid` (also its gid) and `groups`, until the end of the block.

    `mount` ("source;target;type;options;flags") gives it a mount namespace of its own with this mounted first.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SCRIPT, root, groups, str(uid), mount],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert os.read(process.stdout.fileno(), 5) == b"ready"
            yield process.pid
        finally:
            process.stdin.close()
