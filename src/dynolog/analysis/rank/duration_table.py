"""How often something ran and how long: one line a name, and samples of single durations for comparing."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import Integers

_SAMPLES_A_NAME = 400
_SAMPLED_NAMES = 400


class DurationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel or operator. `share` is of all rows of its table, 0 to 1."""

    name: str
    count: int
    total_us: float
    mean_us: float
    p99_us: float
    max_us: float
    share: float


def duration_table(names: list[str], name: NDArray[np.int32], duration_ns: Integers) -> list[DurationRow]:
    """All names, the longest total first."""
    rows = []
    everything = max(int(duration_ns.sum()), 1)
    for number, durations in _by_name(name, duration_ns):
        total = int(durations.sum())
        rows.append(
            DurationRow(
                name=names[number],
                count=len(durations),
                total_us=total / 1000,
                mean_us=total / len(durations) / 1000,
                p99_us=float(np.percentile(durations, 99)) / 1000,
                max_us=int(durations[-1]) / 1000,
                share=total / everything,
            )
        )
    return sorted(rows, key=lambda row: -row.total_us)


class Samples(msgspec.Struct, frozen=True):
    """Single durations of one name in ns, rising, evenly chosen where there are many; `count` and `total_ns` are of all."""

    count: int
    total_ns: int
    duration_ns: Integers


def samples(names: list[str], name: NDArray[np.int32], duration_ns: Integers) -> dict[str, Samples]:
    """Of each name; single durations only of those that took longest."""
    found = {
        names[number]: Samples(len(durations), int(durations.sum()), durations)
        for number, durations in _by_name(name, duration_ns)
    }
    longest = sorted(found, key=lambda text: -found[text].total_ns)
    for place, text in enumerate(longest):
        durations = found[text].duration_ns
        kept = _SAMPLES_A_NAME if place < _SAMPLED_NAMES else 0
        chosen = np.linspace(0, len(durations) - 1, min(kept, len(durations))).round().astype(np.int64)
        found[text] = msgspec.structs.replace(found[text], duration_ns=durations[chosen])
    return found


def _by_name(name: NDArray[np.int32], duration_ns: Integers) -> list[tuple[int, Integers]]:
    """Each number of a name with its durations, rising."""
    if not len(name):
        return []
    order = np.lexsort((duration_ns, name))
    names, durations = name[order], duration_ns[order]
    starts = np.flatnonzero(np.concatenate(([True], names[1:] != names[:-1])))
    return [(int(names[start]), part) for start, part in zip(starts, np.split(durations, starts[1:]), strict=True)]
