"""Names of users by the host's own `/etc/passwd` (passwd(5)). A directory service is never asked: it may hang."""

import os

from dynolog.sources.host_files import HostFiles

_PASSWD = "etc/passwd"  # noqa: S105 - a file name
_LONGEST_FILE_BYTES = 16 << 20


class UserNames:
    """Looks names up below the root of `host`; the file is read again when it has changed."""

    def __init__(self, host: HostFiles) -> None:
        self._path = host.path(_PASSWD)
        self._names: dict[int, str] = {}
        self._version: tuple[int, int] | None = None

    def name(self, uid: int) -> str:
        """The first name that the file has for `uid`, else the number as text."""
        self._refresh()
        return self._names.get(uid, str(uid))

    def _refresh(self) -> None:
        try:
            status = os.stat(self._path)
            version = (status.st_mtime_ns, status.st_size)
            if version == self._version:
                return
            with open(self._path, "rb") as file:
                data = file.read(_LONGEST_FILE_BYTES)
        except OSError:  # none there (a container): numbers then
            self._names, self._version = {}, None
            return
        self._names, self._version = parse_passwd(data), version


def parse_passwd(data: bytes) -> dict[int, str]:
    """Names by uid. Where several have one uid the first counts, as for getpwuid(3); lines that are none are passed over."""
    names: dict[int, str] = {}
    for line in data.split(b"\n"):
        fields = line.split(b":")
        if len(fields) >= 7 and fields[0] and fields[2].isdigit():
            names.setdefault(int(fields[2]), fields[0].decode("utf-8", "replace"))
    return names
