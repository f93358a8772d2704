"""The system calls of perf_event_open(2), bare: numbers and bytes in, numbers and bytes out, OSError on refusal."""

import ctypes
import errno
import fcntl
import os
import struct
from typing import Protocol

PID_CGROUP = 1 << 2  # `pid` is a descriptor of a cgroup directory
FD_CLOEXEC = 1 << 3

# Requests of ioctl(2) on a counter; the argument 1 means the whole group of a leader.
IOC_ENABLE = 0x2400
IOC_DISABLE = 0x2401
IOC_RESET = 0x2403
IOC_ID = 0x80082407
IOC_FLAG_GROUP = 1

_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241}


class PerfCalls(Protocol):
    """What the kernel does for us; tests have one without a kernel. Every method raises OSError as its system call does."""

    def open(self, attr: bytes, pid: int, cpu: int, group_fd: int, flags: int) -> int:
        """perf_event_open(2): a descriptor. pid -1 with a CPU is system-wide; cpu -1 with a pid follows the process."""
        ...

    def control(self, fd: int, request: int, argument: int = 0) -> None:
        """ioctl(2) with a plain argument: IOC_ENABLE, IOC_DISABLE, IOC_RESET."""
        ...

    def event_id(self, fd: int) -> int:
        """The number that stands beside the event's value in a group's read (IOC_ID)."""
        ...

    def read(self, fd: int, size: int) -> bytes:
        """read(2)."""
        ...

    def close(self, fd: int) -> None:
        """close(2)."""
        ...


class KernelCalls:
    """The calls of this machine's kernel. Raises OSError(ENOSYS) from `open` on a processor whose call number is not known."""

    def __init__(self) -> None:
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        self._number = _NUMBERS.get(os.uname().machine)

    def open(self, attr: bytes, pid: int, cpu: int, group_fd: int, flags: int) -> int:
        """perf_event_open(2), close-on-exec."""
        if self._number is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        fd: int = self._syscall(
            ctypes.c_long(self._number),
            ctypes.c_char_p(attr),
            ctypes.c_long(pid),
            ctypes.c_long(cpu),
            ctypes.c_long(group_fd),
            ctypes.c_ulong(flags | FD_CLOEXEC),
        )
        if fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return fd

    def control(self, fd: int, request: int, argument: int = 0) -> None:
        """ioctl(2)."""
        fcntl.ioctl(fd, request, argument)

    def event_id(self, fd: int) -> int:
        """IOC_ID."""
        return int.from_bytes(fcntl.ioctl(fd, IOC_ID, struct.pack("=Q", 0)), "little")

    def read(self, fd: int, size: int) -> bytes:
        """read(2)."""
        return os.read(fd, size)

    def close(self, fd: int) -> None:
        """close(2)."""
        os.close(fd)
