"""What could not be sent yet, on disk: a directory of segment files for one exporter, bounded, and safe against any end of the daemon.

Entries are written before they are sent and marked when they were, each with one write(2): a killed daemon loses none, and sends again at
most the one that was in flight. A machine that goes down loses what was not synced (`sync`).
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
from collections import deque

from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool_segment import (
    MARKER_BYTES,
    Place,
    decode_entry,
    encode_entry,
    scan,
    state_of_sent,
)
from dynolog.model.errors import AddressInUse, FlagError

_log = logging.getLogger(__name__)
_SEGMENT_BYTES = 1 << 20
# A segment whose entries are all sent is replaced at this size: its pages are dropped before the kernel writes them to the disk.
_SENT_SEGMENT_BYTES = 64 << 10
_NAME = re.compile(r"^(\d{10})-([0-9a-f]{16})\.spool$")
_LOCK_NAME = "lock"


class Segment:
    """One file of entries. `places` are those not sent, in order; None: not looked through yet."""

    def __init__(self, number: int, marker: bytes, size: int) -> None:
        self.number = number
        self.marker = marker
        self.size = size
        self.places: deque[Place] | None = None
        self.entries = 0

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.number:010d}-{self.marker.hex()}.spool"


class SpoolEntry:
    """An entry that was taken out to be sent."""

    def __init__(self, payload: Payload, segment: Segment, place: Place) -> None:
        self.payload = payload
        self.segment = segment
        self.place = place


class Spool:
    """Entries in the order in which they came. One thread at a time; every method may wait for the disk and raise OSError."""

    def __init__(self, directory: str, max_bytes: int) -> None:
        """Lock the directory, made when it is not there, and find what an earlier daemon left.

        Raises FlagError when it cannot be used, AddressInUse when another daemon uses it.
        """
        self._directory = directory
        self.max_bytes = max_bytes
        self._segment_bytes = min(_SEGMENT_BYTES, max_bytes // 8)
        self.size_bytes = 0
        self.damaged_records = 0
        self.dropped_records = 0
        self._segments: deque[Segment] = deque()
        self._files: dict[int, int] = {}
        self._writing: Segment | None = None
        self._unsynced = False
        self._new_names = False
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            self._lock = _lock(directory)
            self._find_segments()
        except OSError as error:
            raise FlagError(
                f"--spool_dir: {directory} cannot be used: {error.strerror}: name a directory that dynolog may write"
            ) from error

    def __bool__(self) -> bool:
        """Whether entries may wait (segments that were not looked through count)."""
        return any(segment.places is None or segment.places for segment in self._segments)

    def append(self, payload: Payload) -> SpoolEntry:
        """Write an entry. The oldest segments are dropped when there is no room; OSError: nothing was written."""
        segment = self._segment_to_write()
        entry = encode_entry(payload, segment.marker, segment.entries)
        self._make_room(len(entry), segment)
        self._write(segment, entry)
        place = Place(segment.size, len(entry), payload.records)
        assert segment.places is not None
        segment.places.append(place)
        segment.size += len(entry)
        segment.entries += 1
        self.size_bytes += len(entry)
        self._unsynced = True
        return SpoolEntry(payload, segment, place)

    def first(self) -> SpoolEntry | None:
        """The oldest entry that was not sent; it stays. A segment that cannot be read costs only what is in it."""
        while self._segments:
            segment = self._segments[0]
            try:
                entry = self._first_of(segment)
            except OSError as error:
                _log.warning("spool %s: %s cannot be read: %s", self._directory, segment.name, error.strerror)
                self.damaged_records += _records_of(segment)
                entry, segment.places = None, deque()
            if entry is not None or segment is self._writing:
                return entry
            self._delete(self._segments.popleft())
        return None

    def _first_of(self, segment: Segment) -> SpoolEntry | None:
        places = self._places(segment)
        while places:
            place = places[0]
            payload = decode_entry(os.pread(self._file(segment), place.size, place.offset), segment.marker)
            if payload is not None:
                return SpoolEntry(payload, segment, place)
            self.damaged_records += place.records
            places.popleft()
        return None

    def sent(self, entry: SpoolEntry) -> None:
        """`entry` is done with: it will not be sent again, also not after a restart."""
        segment = entry.segment
        if segment not in self._segments or not segment.places or segment.places[0] is not entry.place:
            return  # its segment was dropped meanwhile
        segment.places.popleft()
        offset, state = state_of_sent(entry.place)
        try:
            os.pwrite(self._file(segment), state, offset)
        finally:
            if not segment.places and (segment is not self._writing or segment.size >= _SENT_SEGMENT_BYTES):
                self._segments.remove(segment)
                self._delete(segment)

    def holds(self, entry: SpoolEntry) -> bool:
        """Whether `entry` is still there."""
        return entry.segment in self._segments

    def sync(self) -> None:
        """Have the disk keep what was appended, whatever happens to the machine."""
        if not self._unsynced:
            return
        self._unsynced = False
        if self._writing is not None:
            os.fdatasync(self._file(self._writing))
        if self._new_names:
            self._new_names = False
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def close(self) -> None:
        """Sync, remove what is empty, and let go of the directory."""
        try:
            if self:
                self.sync()
        finally:
            for segment in [segment for segment in self._segments if segment.places is not None and not segment.places]:
                self._segments.remove(segment)
                self._delete(segment)
            self._close_files()
            os.close(self._lock)

    # --- segments ------------------------------------------------------------------------------------------------------

    def _find_segments(self) -> None:
        found = sorted((int(match[1]), match) for name in os.listdir(self._directory) if (match := _NAME.match(name)))
        for number, match in found:
            size = os.stat(os.path.join(self._directory, match[0])).st_size
            self._segments.append(Segment(number, bytes.fromhex(match[2]), size))
            self.size_bytes += size

    def _places(self, segment: Segment) -> deque[Place]:
        if segment.places is None:
            found = scan(self._read(segment), segment.marker)
            self.damaged_records += found.damaged_records
            segment.places = deque(found.places)
        return segment.places

    def _read(self, segment: Segment) -> bytes:
        parts, offset = [], 0
        while part := os.pread(self._file(segment), _SEGMENT_BYTES, offset):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def _segment_to_write(self) -> Segment:
        segment = self._writing
        if segment is not None and segment.size < self._segment_bytes and segment in self._segments:
            return segment
        if segment is not None:
            self.sync()
        number = self._segments[-1].number + 1 if self._segments else (segment.number + 1 if segment else 1)
        segment = Segment(number, os.urandom(MARKER_BYTES), 0)
        segment.places = deque()
        self._file(segment, os.O_CREAT | os.O_EXCL)
        self._segments.append(segment)
        self._writing = segment
        self._new_names = True
        return segment

    def _make_room(self, size: int, writing: Segment) -> None:
        while self.size_bytes + size > self.max_bytes and self._segments[0] is not writing:
            segment = self._segments.popleft()
            try:
                self._places(segment)
            except OSError as error:
                _log.warning("spool %s: %s cannot be read: %s", self._directory, segment.name, error.strerror)
            self.dropped_records += _records_of(segment)
            self._delete(segment)

    def _write(self, segment: Segment, entry: bytes) -> None:
        file = self._file(segment)
        written = 0
        try:
            while written < len(entry):
                written += os.pwrite(file, memoryview(entry)[written:], segment.size + written)
        except OSError:
            if written:
                os.ftruncate(file, segment.size)
            raise

    def _delete(self, segment: Segment) -> None:
        self.size_bytes -= segment.size
        if segment is self._writing:
            self._writing = None
        if (file := self._files.pop(segment.number, None)) is not None:
            os.close(file)
        with contextlib.suppress(FileNotFoundError):  # somebody tidied up
            os.unlink(os.path.join(self._directory, segment.name))

    def _file(self, segment: Segment, flags: int = 0) -> int:
        """The descriptor of a segment; only the one that is written and the one that is read stay open."""
        file = self._files.get(segment.number)
        if file is None:
            for other in [number for number in self._files if not self._is_used(number)]:
                os.close(self._files.pop(other))
            path = os.path.join(self._directory, segment.name)
            file = self._files[segment.number] = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
        return file

    def _is_used(self, number: int) -> bool:
        return (self._writing is not None and self._writing.number == number) or (
            bool(self._segments) and self._segments[0].number == number
        )

    def _close_files(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def _records_of(segment: Segment) -> int:
    """Records that wait in it; one that could not be read held something."""
    return 1 if segment.places is None else sum(place.records for place in segment.places)


def _lock(directory: str) -> int:
    """Hold the directory; the kernel lets go of it when the daemon ends, however it does."""
    file = os.open(os.path.join(directory, _LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Not flock(2): a child that the daemon forked would hold that on.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise AddressInUse(
                f"--spool_dir: another dynolog keeps its records in {directory}: give each daemon a directory of its own"
            ) from error
        raise
    return file
