"""Where a daemon's unix socket is when nobody says otherwise."""

import os

ROOT_UNIX_PATH = "/run/dynolog/dynolog.sock"


def default_unix_path() -> str:
    """The place for a daemon of this user; "" where there is none."""
    return ROOT_UNIX_PATH if os.geteuid() == 0 else _of_user()


def socket_here() -> str:
    """A socket of a daemon on this machine, this user's or root's, which may be one that a daemon left behind; "" for none."""
    return next((path for path in (_of_user(), ROOT_UNIX_PATH) if path and os.path.exists(path)), "")


def _of_user() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return os.path.join(runtime, "dynolog.sock") if runtime else ""
