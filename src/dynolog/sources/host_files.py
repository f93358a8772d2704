"""The files of a host: `/proc` and `/sys` below a root, read cheaply again and again."""

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Any, TypeVar

from dynolog.model.errors import SourceUnavailable

Shared = TypeVar("Shared")

# A device that was unplugged or a process that ended answers one of these on an open descriptor.
_GONE = (errno.ENODEV, errno.ESRCH, errno.ENXIO, errno.ESTALE)


class KernelFile:
    """One file of procfs or sysfs, kept open: a pread(2) at offset 0 makes the kernel produce it anew.

    Keeping the descriptor saves open and close, which cost more than most reads.
    """

    __slots__ = ("_fd", "_size", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._size = 4096

    def read(self) -> bytes:
        """The whole content. Raises OSError as open(2) and read(2) do; the descriptor is then closed and reopened next time."""
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return self._read_whole()
        except OSError as error:
            self.close()
            if error.errno not in _GONE:
                raise
            # The name may stand for a new device by now.
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            return self._read_whole()

    def _read_whole(self) -> bytes:
        # seq_file(9) hands out whole records only, so a short read is not the end: only an empty one is.
        data = os.pread(self._fd, self._size, 0)
        if not data:
            return data
        offset = len(data)
        parts = [data]
        while part := os.pread(self._fd, self._size, offset):
            parts.append(part)
            offset += len(part)
        if len(parts) == 1:
            return data
        if offset > self._size:
            # Larger buffers cost 4 µs of mmap(2) for each part, and a seq_file fills about a page of them.
            self._size = min(1 << (offset + offset // 4).bit_length(), 1 << 20)
        return b"".join(parts)

    def read_into(self, buffer: bytearray) -> int:
        """The whole content into `buffer`, which grows when it is too small; returns the length. Raises OSError as `read` does.

        For files of megabytes: the memory is used again, where new memory costs a page fault for each 4 kB.
        """
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        length = 0
        try:
            while True:
                if length == len(buffer):
                    buffer.extend(bytes(max(len(buffer), 4096)))
                with memoryview(buffer) as whole, whole[length:] as free:
                    part = os.preadv(self._fd, [free], length)
                if not part:
                    return length
                length += part
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the descriptor; the next read opens the path again."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class HostFiles:
    """`/proc` and `/sys` of the host whose root directory is `root` ("/" here, "/host" in a container, a recorded tree in tests)."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/") or "/"
        self._shared: dict[Any, Any] = {}
        # With a host's root mounted into a container, proc/net is a link to the container's own network namespace;
        # process 1 of the host shows the host's (proc_pid_net(5)).
        self._net = "proc/net"
        if self.root != "/" and os.path.isdir(self.path("proc/1/net")):
            self._net = "proc/1/net"

    def path(self, relative: str) -> str:
        """The absolute path of `relative` ("proc/stat") below the root."""
        return os.path.join(self.root, relative)

    def file(self, relative: str) -> KernelFile:
        """A file to be read again and again; nothing is opened yet."""
        return KernelFile(self.path(relative))

    def shared(self, make: "Callable[[HostFiles], Shared]") -> Shared:
        """The one `make(self)` of this host, made at first use: for a file that several collectors need in one round."""
        found: Shared = self._shared.get(make) or self._shared.setdefault(make, make(self))
        return found

    def net_file(self, name: str) -> KernelFile:
        """A file of the host's network namespace: `net_file("dev")` is /proc/net/dev."""
        return KernelFile(self.path(f"{self._net}/{name}"))

    def read(self, relative: str) -> bytes:
        """Read a file once. Raises OSError."""
        file = KernelFile(self.path(relative))
        try:
            return file.read()
        finally:
            file.close()

    def read_text(self, relative: str) -> str | None:
        """A small attribute as stripped text, or None when it is missing, unreadable or vanished (one device costs only itself)."""
        try:
            return self.read(relative).decode("utf-8", "replace").strip()
        except OSError:
            return None

    def list(self, relative: str) -> list[str]:
        """Names in a directory, sorted; [] when it is not there or not readable."""
        try:
            return sorted(os.listdir(self.path(relative)))
        except OSError:
            return []


def unavailable(source: str, error: OSError) -> SourceUnavailable:
    """The error for a whole source that cannot be read, with the remedy where there is one."""
    reason = error.strerror or str(error)
    match error.errno:
        case errno.ENOENT:
            return SourceUnavailable(
                source, "not there", "this kernel does not have it, or /proc or /sys is not mounted"
            )
        case errno.EACCES | errno.EPERM:
            return SourceUnavailable(source, reason, "run the daemon as root, or give its user read access")
        case errno.EOPNOTSUPP:
            return SourceUnavailable(
                source, "not supported", "the kernel has it switched off (for PSI: boot with psi=1)"
            )
        case _:
            return SourceUnavailable(source, reason)
