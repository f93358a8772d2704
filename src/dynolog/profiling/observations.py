"""What the watch of trace files reports: each an observed fact about one capture."""

import msgspec

from dynolog.model.capture import TraceFile


class TemporarySeen(msgspec.Struct, frozen=True):
    """The file that libkineto writes before it renames it is there, or has grown."""

    size_bytes: int


class FinalSeen(msgspec.Struct, frozen=True):
    """A new file has the final name; its check begins.

    `path` is as the trainer sees it. `host_path` is as the daemon's host sees it: below /proc/PID/root, and so only while
    the process lives, when the host has no other name for it; "" when the process is gone and there is none.
    """

    path: str
    host_path: str
    size_bytes: int


class Checked(msgspec.Struct, frozen=True):
    """The final file is whole to its last byte."""

    file: TraceFile
    path: str
    host_path: str


class Invalid(msgspec.Struct, frozen=True):
    """The final file is not a usable trace; `reason` is a sentence without a full stop. Not `was_read`: it may be one."""

    path: str
    reason: str
    was_read: bool = True


class Unseen(msgspec.Struct, frozen=True):
    """Whether a file is there cannot be told from here; `reason` says why, "" when it can be told again."""

    reason: str


class NothingThere(msgspec.Struct, frozen=True):
    """The last look, made after the process had ended (`TraceWatch.look_last`), found no final file: there never will be one."""


Observation = NothingThere | Unseen | TemporarySeen | FinalSeen | Checked | Invalid
