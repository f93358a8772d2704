"""Adding `distributedInfo` to a trace that lacks it, as analysis tools want it; nothing is held in memory but one block."""

import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from dynolog.fleet.whole_file import written_whole

_KEY = b'"distributedInfo"'
# PyTorch's process groups name their operations after themselves: `nccl:all_reduce`, `gloo:broadcast`.
_COLLECTIVE = re.compile(rb'"name":\s?"(nccl|gloo|ucc|mpi|xccl):')
_LONGEST_PIECE = 32  # of what is looked for, so that it is found where two blocks meet
_BLOCK_BYTES = 1 << 20
# Real traces begin with a space; JSON allows this before an object.
_OPENING = re.compile(rb"[ \t\r\n]*\{")
_ADDED = re.compile(rb'[ \t\r\n]*\{(\n"distributedInfo": \{[^{}]*\},?)')
_LONGEST_HEAD = 4096


class DistributedInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What libkineto writes when it knows; `backend` only when it is known."""

    rank: int
    world_size: int | None = None
    backend: str = ""

    def head(self) -> bytes:
        """What stands after the opening brace of a trace that it was added to. The same facts give the same bytes."""
        return b"\n" + _KEY + b": " + msgspec.json.encode(self) + b","


class TraceScan(msgspec.Struct, frozen=True, kw_only=True):
    """What the text of a trace says: whether it has the key, and the one backend whose collectives it shows ("" for none or several)."""

    has_info: bool
    backend: str = ""


def scan(file: BinaryIO) -> TraceScan:
    """Read all of it, or up to the key. Inside a string the quotes of both would be escaped, so what is found is no part of a text."""
    backends: set[bytes] = set()
    tail = b""
    for block in _blocks(file, 0):
        text = tail + block
        if _KEY in text:
            return TraceScan(has_info=True)
        backends.update(_COLLECTIVE.findall(text))
        tail = text[-_LONGEST_PIECE:]
    return TraceScan(has_info=False, backend=backends.pop().decode() if len(backends) == 1 else "")


def add_info(path: str, info: DistributedInfo, output: str = "") -> bool:
    """Add it to a file, replaced in one step or written as `output`; False when it has one already or is no JSON object as plain text.

    A `backend` that is not given is taken from the collectives in the trace, when they are all of one. Raises OSError.
    """
    with open(path, "rb") as file:
        opening = _OPENING.match(file.read(_LONGEST_HEAD))
        if opening is None:
            return False
        found = scan(file)
        if found.has_info:
            return False
        head = msgspec.structs.replace(info, backend=info.backend or found.backend).head()
        file.seek(opening.end())
        if file.read(_LONGEST_HEAD).lstrip().startswith(b"}"):
            head = head[:-1]  # no comma in an object that was empty
        with written_whole(output or path) as copy:
            copy.write(opening[0] + head)
            for block in _blocks(file, opening.end()):
                copy.write(block)
    return True


def sha256_of(path: str) -> str:
    """The SHA-256 of a file. Raises OSError."""
    with open(path, "rb") as file:
        return _digest(file, 0, 0)


def sha256_before(path: str) -> str:
    """The SHA-256 of a file as it was before `add_info`; of the file as it is when nothing was added. Raises OSError."""
    with open(path, "rb") as file:
        return sha256_before_in(file)


def sha256_before_in(file: BinaryIO) -> str:
    """The same of an open file, which may be one that unpacks what it reads. Raises OSError."""
    file.seek(0)
    added = _ADDED.match(file.read(_LONGEST_HEAD))
    return _digest(file, *added.span(1)) if added else _digest(file, 0, 0)


def _digest(file: BinaryIO, begin: int, end: int) -> str:
    """Without the bytes from `begin` to `end`."""
    digest = hashlib.sha256()
    file.seek(0)
    digest.update(file.read(begin))
    for block in _blocks(file, end):
        digest.update(block)
    return digest.hexdigest()


def _blocks(file: BinaryIO, offset: int) -> Iterator[bytes]:
    file.seek(offset)
    while block := file.read(_BLOCK_BYTES):
        yield block
