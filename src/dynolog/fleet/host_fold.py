"""Many host names in few words, as `--hosts` takes them back: `gpu[001-064,070],login`."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from dynolog.fleet.hostlist import is_ipv6

# The last number of a name, with no port behind it taken for one; as many digits as a list may have.
_NUMBERED = re.compile(r"([^:]*?)([0-9]{1,9})([^0-9:]*(?::[0-9]+)?)")
_MOST_RANGES = 20


class _Range(msgspec.Struct):
    """Names that differ in one number and follow each other; a name without one has no `low`."""

    before: str
    low: str
    after: str
    size: int = 1

    @property
    def following(self) -> str:
        """The next number, as a list would write it."""
        return self.number(self.size)

    def number(self, place: int) -> str:
        """The number at a place, as wide as the first."""
        return str(int(self.low) + place).zfill(len(self.low))

    def __str__(self) -> str:
        return f"{self.low}-{self.number(self.size - 1)}" if self.size > 1 else self.low


def folded(names: Sequence[str], most_ranges: int = _MOST_RANGES) -> str:
    """The names, those that differ in their last number only in one pair of brackets; `and 7 more` beyond so many ranges."""
    ranges = list(_ranges(names))
    shown = ranges[:most_ranges]
    more = sum(one.size for one in ranges[most_ranges:])
    groups: dict[tuple[str, str, bool], list[_Range]] = {}
    for one in shown:
        groups.setdefault((one.before, one.after, bool(one.low)), []).append(one)
    words = [_pattern(before, after, group) for (before, after, _), group in groups.items()]
    return ",".join(words) + (f" and {more:,} more" if more else "")


def _pattern(before: str, after: str, group: Sequence[_Range]) -> str:
    if len(group) == 1 and group[0].size == 1:
        return f"{before}{group[0].low}{after}"
    return f"{before}[{','.join(map(str, group))}]{after}"


def _ranges(names: Sequence[str]) -> Iterator[_Range]:
    """The names of one form together, by number, in the order of the first of each form."""
    forms: dict[tuple[str, str, bool], list[str]] = {}
    for name in dict.fromkeys(names):
        match = None if is_ipv6(name) else _NUMBERED.fullmatch(name)
        before, number, after = match.groups() if match else (name, "", "")
        forms.setdefault((before, after, bool(number)), []).append(number)
    for (before, after, numbered), numbers in forms.items():
        if not numbered:
            yield _Range(before, "", after)
            continue
        ranges: list[_Range] = []
        by_following: dict[str, _Range] = {}
        for number in sorted(numbers, key=lambda text: (int(text), len(text))):
            if one := by_following.pop(number, None):
                one.size += 1
            else:
                ranges.append(one := _Range(before, number, after))
            by_following[one.following] = one
        yield from ranges
