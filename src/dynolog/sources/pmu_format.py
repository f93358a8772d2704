"""How a PMU lays the fields of an event into the words of perf_event_attr (`format/` in sysfs, sysfs-bus-event_source-devices-format)."""

import re

import msgspec

WORDS = ("config", "config1", "config2", "config3")
_FORMAT = re.compile(r"(config[123]?):([0-9,-]+)")


class FormatField(msgspec.Struct, frozen=True):
    """Where a field lies: a word of perf_event_attr and its ranges of bits, the lowest bits of the value in the first range."""

    word: str
    ranges: tuple[tuple[int, int], ...]

    @property
    def bits(self) -> int:
        """How many bits the field has."""
        return sum(high - low + 1 for low, high in self.ranges)

    def place(self, value: int) -> int:
        """The word with `value` in this field and 0 elsewhere. Raises ValueError when the value does not fit."""
        if value < 0 or value >> self.bits:
            raise ValueError(f"{value:#x} does not fit into {self.bits} bit{'s' * (self.bits > 1)}")
        word = 0
        for low, high in self.ranges:
            width = high - low + 1
            word |= (value & ((1 << width) - 1)) << low
            value >>= width
        return word


def parse_format(text: str) -> FormatField:
    """`config:0-7,32-35` → the field. Raises ValueError for anything else: no word, a range of no bits, a bit twice."""
    match = _FORMAT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()!r} is no format such as config:0-7")
    ranges = tuple(_range(part) for part in match[2].split(","))
    taken = [bit for low, high in ranges for bit in range(low, high + 1)]
    if len(taken) != len(set(taken)):
        raise ValueError(f"{text.strip()!r} names a bit twice")
    return FormatField(match[1], ranges)


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise ValueError(f"{text!r} is no range of bits")
    low, high = int(first), int(last if dash else first)
    if not low <= high < 64:
        raise ValueError(f"{text!r} is no range of bits from 0 to 63")
    return low, high
