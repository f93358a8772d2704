"""A single count of some events: open, enable, wait, read, close."""

import contextlib
import errno
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dynolog.sources.perf_event.attributes import EventSpec, user_mode_only
from dynolog.sources.perf_event.group import Group, Target
from dynolog.sources.perf_event.reading import Reading
from dynolog.sources.perf_event.syscall import PerfCalls

_GONE = (errno.ESRCH, errno.ENODEV)


class EventCount(msgspec.Struct, frozen=True):
    """What one event counted, over all its targets, scaled by each target's own times; in `event.unit`.

    `count` is None where nothing was counted: `refusal` says why it could not be opened, or else no counter was free. `running_ratio` is
    the share of time with a counter, over all targets; None when no target was ever enabled (a thread that did not run).
    """

    event: EventSpec
    count: float | None
    running_ratio: float | None
    targets: int
    user_mode_only: bool = False
    refusal: OSError | None = None


class _Opened(NamedTuple):
    event: EventSpec
    groups: list[Group]
    refusal: OSError | None
    narrowed: bool


class OneOff:
    """Counters of events, each by itself, on the targets that `targets_of` gives for it; closed by `close`."""

    def __init__(
        self, calls: PerfCalls, events: Iterable[EventSpec], targets_of: Callable[[EventSpec], Sequence[Target]]
    ) -> None:
        self._calls = calls
        self._opened: list[_Opened] = []
        try:
            for event in events:
                self._opened.append(self._open(event, targets_of(event)))
        except BaseException:
            self.close()
            raise

    def _open(self, event: EventSpec, targets: Sequence[Target]) -> _Opened:
        asked = event
        groups: list[Group] = []
        refusal: OSError | None = None
        for target in targets:
            try:
                groups.append(Group(self._calls, [event], target))
            except PermissionError as error:
                # perf_event_paranoid of 2 forbids the kernel's part only, of one's own processes.
                narrower = user_mode_only(event)
                if narrower != event and not groups:
                    with contextlib.suppress(OSError):
                        groups.append(Group(self._calls, [narrower], target))
                        event = narrower
                        continue
                refusal = refusal or error
            except OSError as error:
                if error.errno not in _GONE or len(targets) == 1:
                    refusal = refusal or error
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    break
        return _Opened(event, groups, refusal, event != asked)

    @property
    def is_counting(self) -> bool:
        """Whether anything could be opened."""
        return any(opened.groups for opened in self._opened)

    def start(self) -> None:
        """Enable all counters. Raises OSError."""
        for opened in self._opened:
            for group in opened.groups:
                group.enable()

    def stop(self) -> list[EventCount]:
        """Disable all counters, and what they have counted, in the order of the events. Raises OSError."""
        for opened in self._opened:
            for group in opened.groups:
                group.disable()
        return [_count(opened) for opened in self._opened]

    def close(self) -> None:
        """Close every descriptor."""
        for opened in self._opened:
            for group in opened.groups:
                group.close()


def _count(opened: _Opened) -> EventCount:
    readings = [reading for group in opened.groups if (reading := group.read()) is not None]
    enabled_ns = sum(reading.enabled_ns for reading in readings)
    running_ns = sum(reading.running_ns for reading in readings)
    counts = [_scaled(reading) for reading in readings]
    known = [count for count in counts if count is not None]
    # The count of some of the targets would look like that of all of them.
    complete = bool(known) and len(known) == len(opened.groups) and opened.refusal is None
    return EventCount(
        event=opened.event,
        count=sum(known) * opened.event.scale if complete else None,
        running_ratio=min(running_ns / enabled_ns, 1.0) if enabled_ns else None,
        targets=len(opened.groups),
        user_mode_only=opened.narrowed,
        refusal=opened.refusal,
    )


def _scaled(reading: Reading) -> float | None:
    """The count over the whole time; None when it waited for a counter all the time. What was never enabled has counted 0."""
    if reading.enabled_ns == 0:
        return float(reading.counts[0])
    if reading.running_ns == 0:
        return None
    return reading.counts[0] * max(reading.enabled_ns / reading.running_ns, 1.0)
