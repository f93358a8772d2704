"""A trace that was brought here."""

import msgspec


class Fetched(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file brought here; `error` says why not. `sha256` is of the file as the trainer wrote it."""

    capture_id: str
    path: str = ""
    size_bytes: int = 0
    sha256: str = ""
    already_here: bool = False
    error: str = ""
