"""The secret that a destination asks for: from a flag, or from a file that is read again when it changes."""

import os
import stat

from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag, Settings

ACCESS_TOKEN = Flag(
    name="access_token",
    default="",
    help="access token of ODS and Scuba; other users see it in the process list: prefer --access_token_file",
    section="exporters",
    secret=True,
)
ACCESS_TOKEN_FILE = Flag(
    name="access_token_file",
    default="",
    help="file with the access token of ODS and Scuba, readable by its owner only; read again when it changes",
    section="exporters",
)
_MOST_BYTES = 16_384


class AccessToken:
    """The token. Neither the token nor a part of it is ever in an error."""

    def __init__(self, token: str, path: str) -> None:
        """Raises FlagError for a file that cannot be used, with what to do; "" and "" is no token."""
        self._token = token
        self._path = path
        self._seen: tuple[int, ...] = ()
        if token and path:
            raise FlagError("--access_token and --access_token_file are both given: leave one of them out")
        if path:
            try:
                self.value()
            except OSError as error:
                raise FlagError(f"--access_token_file={path}: {error.strerror or error}") from None

    def value(self) -> str:
        """The token as it is now. Raises OSError when the file cannot be read, or is no secret any more."""
        if self._path:
            facts = os.stat(self._path)
            seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size, facts.st_mode, facts.st_uid)
            if seen != self._seen:
                self._token = _read(self._path)
                self._seen = seen
        return self._token


def _read(path: str) -> str:
    # Whoever may write the directory can put a pipe there; it must not hold the daemon's start up.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError("the token file is not a regular file")
        if facts.st_mode & 0o077:
            raise OSError(f"the token file is open to other users: chmod 600 {path}")
        if facts.st_uid not in (0, os.geteuid()):
            raise OSError(f"the token file belongs to uid {facts.st_uid}: chown it to uid {os.geteuid()} or root")
        content = file.read(_MOST_BYTES + 1).strip()
    if not content or len(content) > _MOST_BYTES:
        raise OSError(f"the token file holds {len(content)} bytes: a token has 1 to {_MOST_BYTES}")
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        raise OSError("the token file holds bytes that are no ASCII text") from None


def access_token_of(settings: Settings) -> AccessToken:
    """From the flags. Raises FlagError."""
    return AccessToken(settings.text(ACCESS_TOKEN.name), settings.text(ACCESS_TOKEN_FILE.name))
