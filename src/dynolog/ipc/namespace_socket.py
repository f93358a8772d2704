"""A socket inside another network namespace (setns(2)); abstract names belong to a network namespace."""

import os
import socket

from dynolog.ipc.endpoint import bound_socket

_CLONE_NEWNET = 0x40000000
_CAP_SYS_PTRACE = 19  # to see the namespaces of other users' processes
_CAP_SYS_ADMIN = 21  # to enter them


def missing_capabilities(status: bytes) -> tuple[str, ...]:
    """Which of the capabilities that joining needs are not in CapEff of a `/proc/self/status` (proc_pid_status(5))."""
    effective = 0
    for line in status.split(b"\n"):
        if line.startswith(b"CapEff:"):
            effective = int(line.split()[1], 16)
    needed = (("CAP_SYS_ADMIN", _CAP_SYS_ADMIN), ("CAP_SYS_PTRACE", _CAP_SYS_PTRACE))
    return tuple(name for name, bit in needed if not effective >> bit & 1)


def bind_inside(proc: str, pid: int, inode: int, address: bytes) -> socket.socket:
    """Bind `address` in the network namespace `inode` that process `pid` is in. Raises OSError; ProcessLookupError when it left.

    The calling thread stays in that namespace: it must do nothing else and end. The socket can be used from any thread.
    """
    fd = os.open(f"{proc}/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_ino != inode:  # the pid is another process by now
            raise ProcessLookupError(f"pid {pid} is not in net:[{inode}] any more")
        _set_network_namespace(fd)
    finally:
        os.close(fd)
    return bound_socket(address)


def _set_network_namespace(fd: int) -> None:
    if setns := getattr(os, "setns", None):  # Python 3.12
        setns(fd, _CLONE_NEWNET)
        return
    import ctypes  # noqa: PLC0415 - only where a namespace is joined

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
