"""Xid errors, from the driver's events (nvmlEventSetWait): counted by device and code, because a gauge shows only the last one."""

import ctypes
from typing import Any

from dynolog.sources.nvml.errors import Code
from dynolog.sources.nvml.values import Gathered

_XID_CRITICAL_ERROR = 0x8  # nvmlEventTypeXidCriticalError
# A device in a loop of errors may give more than can be read in a round; the rest is read in the next one.
_MOST_EVENTS = 10_000


class XidCounts:
    """What was seen since the start, by uuid. It outlives sessions, so that counters never fall."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}
        self._last_seen: dict[str, dict[int, float]] = {}

    def add(self, uuid: str, code: int, now_wall_s: float) -> None:
        """One more error."""
        counts = self._counts.setdefault(uuid, {})
        counts[code] = counts.get(code, 0) + 1
        self._last_seen.setdefault(uuid, {})[code] = now_wall_s

    def gather(self, uuid: str, gathered: Gathered) -> None:
        """Add the counters of one device, and when each code was last seen."""
        for code, count in self._counts.get(uuid, {}).items():
            gathered.count(f"xid_errors.{code}", count)
        for code, seen_s in self._last_seen.get(uuid, {}).items():
            gathered.put(f"xid_last_seen_timestamp.{code}", seen_s)


class XidEvents:
    """The events of one session. The driver keeps events only for those who wait: what was before is not seen."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._set: Any = None
        self._uuids: dict[int | None, str] = {}

    def register(self, handle: Any, uuid: str) -> None:
        """Listen to one device. Raises NVMLError when the device or driver has no such events."""
        if self._set is None:
            self._set = self._nvml.nvmlEventSetCreate()
        self._nvml.nvmlDeviceRegisterEvents(handle, _XID_CRITICAL_ERROR, self._set)
        self._uuids[_address(handle)] = uuid

    def drain(self, counts: XidCounts, now_wall_s: float) -> None:
        """Count all events that have come, without waiting. Raises NVMLError when the driver does not answer."""
        if not self._uuids:
            return
        for _ in range(_MOST_EVENTS):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._set, 0)
            except self._nvml.NVMLError as error:
                if error.value == Code.TIMEOUT:
                    return
                raise
            uuid = self._uuids.get(_address(event.device))
            if uuid is not None and event.eventType & _XID_CRITICAL_ERROR:
                counts.add(uuid, int(event.eventData), now_wall_s)

    def close(self) -> None:
        """Stop listening. Never raises."""
        events, self._set = self._set, None
        self._uuids.clear()
        if events is not None:
            try:
                self._nvml.nvmlEventSetFree(events)
            except self._nvml.NVMLError:
                return  # the driver has gone, and the set with it


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
