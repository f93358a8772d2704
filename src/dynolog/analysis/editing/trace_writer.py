"""Writing a trace: strict JSON that viewers open, gzip or not, in place only when it is whole."""

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

import msgspec

from dynolog.fleet.whole_file import written_whole
from dynolog.model.errors import DynologError
from dynolog.model.json_text import encode_json

# 200 MB/s of JSON and an eighth larger than the default level's half of that.
_GZIP_LEVEL = 4
_GATHERED_BYTES = 1 << 20
Text = bytes | msgspec.Raw


class CannotWrite(DynologError):  # noqa: N818 - it says what is the case
    """The output cannot be written, or must not be."""


class TraceWriter:
    """Takes events one after the other. `written_bytes` is what went to the disk so far, `events` how many."""

    def __init__(self, file: BinaryIO, path: str, *, bare_list: bool) -> None:
        self._file = file
        self._path = path
        self._zip = zlib.compressobj(_GZIP_LEVEL, wbits=31) if path.endswith(".gz") else None
        self._bare_list = bare_list
        self._pieces: list[Text] = []
        self._gathered = 0
        self._head_keys: set[str] = set()
        self.events = 0
        self.written_bytes = 0

    def begin(self, members: Mapping[str, object]) -> None:
        """What is known before the events. Nothing of it goes into a bare list."""
        if self._bare_list:
            self._put(b"[\n")
            return
        self._head_keys = set(members)
        self._put(b"{\n")
        for key, value in _readable(members):
            self._put(encode_json(key) + b": " + encode_json(value) + b",\n")
        self._put(b'"traceEvents": [\n')

    def add(self, events: Iterable[Text]) -> None:
        """Write events."""
        for event in events:
            self._put(b",\n" if self.events else b"")
            self._put(event)
            self.events += 1

    def end(self, members: Mapping[str, object]) -> None:
        """What became known since."""
        self._put(b"\n]")
        if not self._bare_list:
            for key, value in _readable(members):
                if key not in self._head_keys:
                    self._put(b",\n" + encode_json(key) + b": " + encode_json(value))
            self._put(b"\n}")
        self._put(b"\n")
        self._flush(last=True)

    def _put(self, piece: Text) -> None:
        self._pieces.append(piece)
        self._gathered += 300  # the length of a Raw is not to be had without a copy; events have about this many bytes
        if self._gathered >= _GATHERED_BYTES:
            self._flush(last=False)

    def _flush(self, *, last: bool) -> None:
        text = b"".join(self._pieces)
        self._pieces.clear()
        self._gathered = 0
        if self._zip is not None:
            text = self._zip.compress(text) + (self._zip.flush() if last else b"")
        with _named(self._path):
            self._file.write(text)
        self.written_bytes += len(text)


def _readable(members: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Without a unit that there is not: viewers refuse the whole file for it."""
    return ((key, value) for key, value in members.items() if key != "displayTimeUnit" or value in ("ms", "ns"))


@contextlib.contextmanager
def writing(path: str, inputs: Iterable[str], *, bare_list: bool = False) -> Iterator[TraceWriter]:
    """A writer for `path`, compressed when it ends in .gz; the file appears at the end of the block or not at all.

    Raises CannotWrite when it is one of the inputs, or the disk is full or forbidden; then nothing is left behind.
    """
    for source in inputs:
        if os.path.exists(path) and os.path.samefile(source, path):
            raise CannotWrite(f"{path} is what is read: name another file with --output")
    if os.path.lexists(path) and not os.path.isfile(path):
        raise CannotWrite(f"{path} is no ordinary file, and a file cannot take its place")
    with contextlib.ExitStack() as stack:
        with _named(path):
            file = stack.enter_context(written_whole(path))
        yield TraceWriter(file, path, bare_list=bare_list)
        with _named(path):
            stack.close()


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror or error}; nothing is left of it") from error
