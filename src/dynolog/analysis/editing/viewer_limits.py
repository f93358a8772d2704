"""What viewers cannot hold, and what is written in its place. Each limit was found with Perfetto 52: tests/integration/test_perfetto.py.

- A `ts`, `dur`, `tts` or `tdur` that is no number makes it refuse the whole file. An event without a duration is lost, one of a negative
  duration is drawn backwards.
- A process or thread whose number does not fit into 32 bits without a sign counts as missing: its events land on another track, where
  what overlaps is dropped. libkineto writes such numbers: threads that it knows by their pthread_t, cut to 32 bits.
- Thread 0 is taken for the thread with the number of its process: stream 0 of GPU 7 for stream 7.
- Times are read as floating point: from 2^42 µs on, the ns that libkineto writes behind the point are rounded, events seem to overlap,
  and are dropped. Negative ones are dropped.
"""

import msgspec
import numpy as np

from dynolog.analysis.editing.event_texts import NOT_GIVEN, EventText, TextBatch
from dynolog.analysis.reading.columns import NONE, Integers, Mask

_NUMBERS = 1 << 32
# Far from those of processes, of streams, and of threads that were cut to 32 bits and lie near the ends.
_THREAD_0 = 4_000_000_000
_LARGEST_EXACT_NS = (1 << 42) * 1000
_NS_PER_US = 1000
_CLOCKS = ("tts", "tdur")


def viewer_number(number: object) -> object:
    """A process or thread as viewers can tell it from others: the same 32 bits without a sign, or a text where there are more."""
    if type(number) is not int or 0 <= number < _NUMBERS:
        return number
    return number + _NUMBERS if -_NUMBERS // 2 <= number < 0 else str(number)


def viewer_thread(number: object) -> object:
    """A thread as `viewer_number`, and apart from what has the number of its process."""
    return _THREAD_0 if type(number) is int and number == 0 else viewer_number(number)


def _has_thread(event: EventText) -> bool:
    """Whether its `tid` means one: of processes and counters it means nothing."""
    return event.ph != "C" and not (event.ph == "M" and str(event.name).startswith("process_"))


def lose_digits(begin_ns: Integers, duration_ns: Integers) -> bool:
    """Whether viewers would round such times, in ns as they stand in the file, or drop them."""
    if not len(begin_ns):
        return False
    late = begin_ns >= _LARGEST_EXACT_NS
    fine = (begin_ns % _NS_PER_US != 0) | (duration_ns % _NS_PER_US != 0)
    return bool((late & fine).any() or (begin_ns < 0).any())


class ViewerLimits:
    """Brings events within them; to be done after all other changes. `mended` counts durations that became 0."""

    def __init__(self) -> None:
        self._batch = TextBatch(())
        self.mended = 0

    def touches(self, batch: TextBatch) -> Mask:
        """Those that are beyond one."""
        self._batch = batch
        odd = [
            viewer_number(event.pid) is not event.pid
            or (viewer_thread(event.tid) is not event.tid and _has_thread(event))
            or event.tts is not NOT_GIVEN
            or event.tdur is not NOT_GIVEN
            for event in batch.events
        ]
        names_with_no_time = [
            event.ph == "M" and at_ns == NONE and bool(event.ts)
            for event, at_ns in zip(batch.events, batch.at_ns.tolist(), strict=True)
        ]
        mask: Mask = np.array(odd, np.bool_) | np.array(names_with_no_time, np.bool_) | self._without_duration(batch)
        return mask

    @staticmethod
    def _without_duration(batch: TextBatch) -> Mask:
        given = np.fromiter((event.dur is not NOT_GIVEN for event in batch.events), np.bool_, len(batch.events))
        unusable: Mask = (batch.duration_ns < 0) & (given | batch.complete)
        return unusable

    def change(self, fields: dict[str, msgspec.Raw], row: int, /) -> None:
        """Within them."""
        event = self._batch.events[row]
        for name, known in (("pid", viewer_number), ("tid", viewer_thread)):
            if name in fields and (name == "pid" or _has_thread(event)):
                number = msgspec.json.decode(fields[name])
                if (within := known(number)) is not number:
                    fields[name] = msgspec.Raw(msgspec.json.encode(within))
        for name in _CLOCKS:
            fields.pop(name, None)
        if self._batch.at_ns[row] == NONE:
            fields["ts"] = msgspec.Raw(b"0")
        if self._batch.duration_ns[row] < 0:
            if event.ph == "X":
                fields["dur"] = msgspec.Raw(b"0")
                self.mended += 1
            else:
                fields.pop("dur", None)
