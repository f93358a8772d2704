"""Adding `distributedInfo` to a trace that lacks it, as analysis tools want it; nothing is held in memory but one block."""

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from dynolog.fleet.whole_file import written_whole

_KEY = b'"distributedInfo"'
_BLOCK_BYTES = 1 << 20


class DistributedInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What libkineto writes when it knows; `backend` only when it is known."""

    rank: int
    world_size: int | None = None
    backend: str = ""

    def head(self) -> bytes:
        """What stands after the opening brace of a trace that it was added to. The same facts give the same bytes."""
        return b"\n" + _KEY + b": " + msgspec.json.encode(self) + b","


def has_info(file: BinaryIO) -> bool:
    """Whether the text holds the key. Inside another string its quotes would be escaped, so it can only be a key or a whole value."""
    tail = b""
    file.seek(0)
    while block := file.read(_BLOCK_BYTES):
        if _KEY in tail + block:
            return True
        tail = block[-len(_KEY) + 1 :]
    return False


def add_info(path: str, info: DistributedInfo) -> bool:
    """Add it to a file, replaced in one step; False when it has one already or is no JSON object as plain text. Raises OSError."""
    with open(path, "rb") as file:
        if file.read(1) != b"{" or has_info(file):
            return False
        with written_whole(path) as copy:
            copy.write(b"{" + _before_rest(file, info))
            for block in _blocks(file, 1):
                copy.write(block)
    return True


def _before_rest(file: BinaryIO, info: DistributedInfo) -> bytes:
    """Without the comma where the object is empty."""
    file.seek(1)
    empty = file.read(4096).lstrip().startswith(b"}")
    return info.head()[:-1] if empty else info.head()


def sha256_without(path: str, info: DistributedInfo | None) -> str:
    """The SHA-256 of a file as it was before `info` was added; of the file as it is when that was not done. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        offset = 0
        if info is not None:
            head = b"{" + info.head()
            if file.read(len(head)) == head:
                digest.update(b"{")
                offset = len(head)
        for block in _blocks(file, offset):
            digest.update(block)
    return digest.hexdigest()


def _blocks(file: BinaryIO, offset: int) -> Iterator[bytes]:
    file.seek(offset)
    while block := file.read(_BLOCK_BYTES):
        yield block
