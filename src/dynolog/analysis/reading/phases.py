"""What kind of entry each event is, by its `ph`: for a whole batch at once, since every question asked of single events costs a second
for every few tens of millions."""

import enum
import itertools
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import Mask
from dynolog.analysis.reading.event_fields import Event

T = TypeVar("T")

# The code of what is no single ASCII character.
NO_CODE = 0
_BREAK = ord("\n")


class PhaseGroup(enum.IntEnum):
    """What is done with an entry."""

    UNKNOWN = 0
    COMPLETE = 1
    FLOW = 2
    MARK = 3
    PAIRED = 4  # begin and end
    DESCRIBED = 5  # counters and names of tracks


_GROUPS = np.zeros(256, np.uint8)
for _phases, _group in (
    ("X", PhaseGroup.COMPLETE),
    ("stf", PhaseGroup.FLOW),
    ("iIRn", PhaseGroup.MARK),
    ("BE", PhaseGroup.PAIRED),
    ("CM", PhaseGroup.DESCRIBED),
):
    _GROUPS[[ord(_phase) for _phase in _phases]] = _group


def phase_codes(events: Sequence[Event]) -> NDArray[np.uint8]:
    """The character code of each event's phase, or NO_CODE."""
    phases = [event.ph for event in events]
    text = np.frombuffer("\n".join([*phases, ""]).encode("utf-8", "surrogatepass"), np.uint8)
    codes = text[::2]
    # A break behind each character and nowhere else: then each phase is one character.
    if len(text) == 2 * len(phases) and (text[1::2] == _BREAK).all() and (codes != _BREAK).all():
        return codes
    each = (ord(phase) if len(phase) == 1 and phase.isascii() else NO_CODE for phase in phases)
    return np.fromiter(each, np.uint8, len(phases))


def groups_of(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The PhaseGroup of each code."""
    return _GROUPS[codes]


def chosen(items: Sequence[T], mask: Mask) -> Sequence[T]:
    """Those that the mask has; to ask an array for one truth after the other would cost more than all else."""
    return items if mask.all() else list(itertools.compress(items, mask.tobytes()))
