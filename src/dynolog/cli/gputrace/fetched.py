"""A trace that was brought here."""

import msgspec


class Fetched(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file brought here; `error` says why not. `sha256` is of the file as the trainer wrote it.

    With `distributed_info_added` its rank was added, with `host_tracks` so many counter tracks of the host; then `fetched_sha256` is of the
    file with them. `host_note` says why there are no tracks.
    """

    capture_id: str
    path: str = ""
    size_bytes: int = 0
    sha256: str = ""
    already_here: bool = False
    fetched_sha256: str = ""
    distributed_info_added: bool = False
    host_tracks: int = 0
    host_note: str = ""
    error: str = ""
