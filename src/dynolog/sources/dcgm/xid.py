"""Xid errors, each counted once.

Field 230 holds the last code until another one comes, so its value says nothing about when, and a second error of the same code cannot be
seen in it. The engine stores every error with its time, though, and gives all since a moment: that is what is read.
"""

import ctypes
from typing import Any

from dynolog.sources.dcgm import blanks, codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.connection import Connection
from dynolog.sources.dcgm.fields import XID
from dynolog.sources.dcgm.watching import EntityGroup, Watch

# Errors come from the driver when they happen; the period only says how often the engine looks after the watch. Kept long enough for a
# daemon that was held up, not so many that a storm of errors fills memory.
_KEEP_S = 3600.0
_MICROSECONDS = 1e6


class XidCounts:
    """Errors of each GPU by code since this process started, and when each was last seen (Unix time)."""

    def __init__(self) -> None:
        self._counts: dict[int, dict[int, int]] = {}
        self._last_us: dict[tuple[int, int], int] = {}

    def add(self, gpu: int, code: int, at_us: int) -> None:
        """One more."""
        codes_of_gpu = self._counts.setdefault(gpu, {})
        codes_of_gpu[code] = codes_of_gpu.get(code, 0) + 1
        self._last_us[gpu, code] = max(at_us, self._last_us.get((gpu, code), 0))

    def forget(self, gpu: int) -> None:
        """Another GPU has this number now."""
        for code in self._counts.pop(gpu, {}):
            del self._last_us[gpu, code]

    def put(self, gpu: int, values: dict[str, int | float | str], counters: dict[str, int | float]) -> None:
        """Into a reading: `xid_errors.31`, `xid_last_seen_timestamp.31`."""
        for code, count in self._counts.get(gpu, {}).items():
            counters[f"xid_errors.{code}"] = count
            values[f"xid_last_seen_timestamp.{code}"] = self._last_us[gpu, code] / _MICROSECONDS


class XidWatch:
    """Asks one engine for the errors since the last time."""

    def __init__(self, connection: Connection, group: EntityGroup, period_s: float, since_us: int) -> None:
        """Raises DcgmError."""
        self._connection = connection
        self._group = group
        self.since_us = since_us
        self._watch = Watch(connection, group, (XID,), period_s, _KEEP_S)
        self._found: list[tuple[int, int, int]] = []
        self._callback = structs.ValueCallback(self._take)

    def read(self, counts: XidCounts) -> None:
        """Count what came since. Raises DcgmError when the connection is lost."""
        after_us = ctypes.c_int64()
        for fields in self._watch.field_group_ids:
            self._found.clear()
            code = self._connection.library.code(
                "dcgmGetValuesSince_v2",
                self._connection.handle,
                self._group.id,
                fields,
                self.since_us,
                ctypes.byref(after_us),
                self._callback,
                None,
            )
            if code in codes.CONNECTION_LOST:
                raise DcgmError("dcgmGetValuesSince_v2", code)
            for gpu, xid, at_us in self._found:
                counts.add(gpu, xid, at_us)
                self.since_us = max(self.since_us, at_us + 1)

    def _take(self, group: int, entity: int, values: Any, count: int, _data: object) -> int:
        """The engine's callback; 0 lets it go on."""
        for index in range(count if group == structs.ENTITY_GPU else 0):
            value = values[index]
            xid = value.value.i64
            # Some versions store a 0 for 'none so far'.
            is_error = value.status == codes.OK and blanks.blank_int(xid) is None and xid > 0
            if is_error and value.ts >= self.since_us:
                self._found.append((entity, xid, value.ts))
        return 0

    def close(self) -> None:
        """Have the engine stop. Never raises."""
        self._watch.close()
