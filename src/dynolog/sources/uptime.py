"""Time since boot (`/proc/uptime`, proc_uptime(5)) and which boot it is (`/proc/sys/kernel/random/boot_id`, random(4))."""

import re

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, unavailable

_BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def parse(data: bytes) -> int:
    """Whole seconds since boot. Raises ValueError when the file does not start with a number of seconds."""
    whole, _, _ = data.partition(b" ")[0].partition(b".")
    if not whole.isdigit() or len(whole) > 19:
        raise ValueError("not a number of seconds")
    return int(whole)


class UptimeReader:
    """Reads `/proc/uptime` again and again, the boot id once. Raises SourceUnavailable when the former cannot be read."""

    def __init__(self, host: HostFiles) -> None:
        self._file = host.file("proc/uptime")
        self._host = host
        self._boot_id: str | None = None

    def uptime_s(self) -> int:
        """Whole seconds since boot, time asleep included."""
        try:
            return parse(self._file.read())
        except OSError as error:
            raise unavailable("/proc/uptime", error) from error
        except ValueError as error:
            raise SourceUnavailable("/proc/uptime", str(error)) from error

    def boot_id(self) -> str | None:
        """The UUID of this boot, None when the kernel does not say; it cannot change while we run."""
        if self._boot_id is None:
            text = self._host.read_text("proc/sys/kernel/random/boot_id") or ""
            self._boot_id = text if _BOOT_ID.fullmatch(text) else ""
        return self._boot_id or None
