"""The samples of one collector of one source and device, and when they leave."""

from collections.abc import Iterable

from dynolog.exporters.prometheus.names import Type
from dynolog.exporters.prometheus.sample import Sample

# A value is shown for three of its intervals, and for no less than this.
_INTERVALS_KEPT = 3
_LEAST_AGE_NS = 3_000_000_000
# For a source that has reported once and does not say its interval.
_DEFAULT_AGE_NS = 180_000_000_000
_LONGEST_GAP_NS = 3_600_000_000_000
# A counter that did not grow by a known number for so many rounds of its device is not known any more...
_ROUNDS_KEPT = 3
# ...and one whose device is there, but which has not been given for so long, is not either.
_COUNTER_AGE_NS = 300_000_000_000


class Part:
    """What comes together, and so goes together. Times in ns of the monotonic clock."""

    def __init__(self) -> None:
        self.samples: dict[str, Sample] = {}
        self.round = 0
        self.stale_ns = 0
        self.age_ns = _DEFAULT_AGE_NS
        self._wall_ns: int | None = None
        self._interval_ns: int | None = None
        # Whether what a round lacks is known to be missing.
        self._exact = True

    def begin(self, now_ns: int, wall_ns: int, interval_ns: int | None, *, exact: bool) -> None:
        """A record of `wall_ns` has come in which this part takes part."""
        if interval_ns is None and self._wall_ns is not None:
            # By the records' own stamps, because a queue may hold some up; a clock that was set says nothing.
            gap_ns = wall_ns - self._wall_ns
            interval_ns = gap_ns if 0 < gap_ns <= _LONGEST_GAP_NS else self._interval_ns
        self._wall_ns = wall_ns
        self._exact = exact
        if interval_ns is not None:
            self._interval_ns = interval_ns
            self.age_ns = max(_INTERVALS_KEPT * interval_ns, _LEAST_AGE_NS)
        self.stale_ns = now_ns + self.age_ns
        self.round += 1

    def leaving(self) -> list[Sample]:
        """What the round that was just taken in shows to have gone.

        A gauge leaves with the first round that lacks it. A counter's total stays true while its device is reset, so it stays
        while any value of the device was seen in the last three rounds.
        """
        this_round = self.round
        missing = [sample for sample in self.samples.values() if sample.seen != this_round]
        if not missing:
            return missing
        lately = this_round - _ROUNDS_KEPT
        present = {sample.instance for sample in self.samples.values() if sample.seen > lately}
        counter_rounds = max(_ROUNDS_KEPT, _COUNTER_AGE_NS // max(self._interval_ns or 1, 1))
        return [sample for sample in missing if self._has_left(sample, present, counter_rounds)]

    def _has_left(self, sample: Sample, present: Iterable[str], counter_rounds: int) -> bool:
        absent = self.round - sample.seen
        if sample.family.type is Type.COUNTER:
            return sample.instance not in present or absent >= counter_rounds
        return self._exact or absent >= _ROUNDS_KEPT
