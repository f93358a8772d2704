"""Two recordings of the same job: what became slower or faster, what is new, what is gone, and how sure that is."""

from collections.abc import Sequence

import msgspec
import numpy as np

from dynolog.analysis.job.rank_sum import adjusted, rank_test
from dynolog.analysis.rank.duration_table import Samples
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.analysis.reading.columns import Integers

# Below so many calls on a side nothing is said of chance.
_FEWEST_CALLS = 8
_CHANGED = 0.05  # of a call's mean duration, or of how often it is called
_CERTAIN, _LIKELY = 0.001, 0.05
_CLEAR_EFFECT = 0.64  # commonly called a medium effect
_LEAST_SHARE = 0.001  # of the longer side's total: what is shorter is not listed


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel (device time) or an operator (host time without what it calls) in both recordings. Times are per unit (`Comparison`).

    `verdict`: slower, faster, more calls, fewer calls, new, gone, same. `sure`: certain, likely, unsure, or too few calls to tell.
    `effect` is how probably a call after lasts longer than one before; None where one side has none.
    """

    name: str
    what: str
    verdict: str
    sure: str
    before_us: float
    after_us: float
    before_calls: float
    after_calls: float
    mean_ratio: float | None = None
    effect: float | None = None

    @property
    def change_us(self) -> float:
        """What it costs more."""
        return self.after_us - self.before_us


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`unit` is "step" (of one rank) when both recordings have steps, else "second" of recording. `steps` compares the durations of
    whole steps. `notes` say what weakens it."""

    unit: str
    before_units: float
    after_units: float
    steps: Change | None
    kernels: list[Change]
    operators: list[Change]
    notes: list[str]


def compare(before: Sequence[RankResult], after: Sequence[RankResult]) -> Comparison:
    """All ranks of each side together."""
    have_steps = all(result.summary.steps.median_ns for result in (*before, *after))
    unit = "step" if have_steps else "second"
    units = _units(before, unit), _units(after, unit)
    notes = [f"neither recording can be told by steps: times are per {unit}"] if not have_steps else []
    steps = None
    if have_steps:
        durations = [np.sort(_step_durations(side)) for side in (before, after)]
        steps = _changes({"steps": _as_samples(durations[0])}, {"steps": _as_samples(durations[1])}, "steps", (1, 1))[0]
        steps = msgspec.structs.replace(
            steps,
            before_us=float(durations[0].mean()) / 1000,
            after_us=float(durations[1].mean()) / 1000,
            verdict=steps.verdict if steps.verdict in ("slower", "faster") else "same",
        )
        fewest = min(len(one) for one in durations)
        if fewest == 1:
            notes.append("only one whole step on a side: what is called sure holds for that step, not for the job")
        elif fewest < _FEWEST_CALLS:
            notes.append(f"only {fewest} whole steps on a side: too few to tell slower steps from chance")
    return Comparison(
        unit=unit,
        before_units=units[0],
        after_units=units[1],
        steps=steps,
        kernels=_changes(_pooled(before, "kernel_samples"), _pooled(after, "kernel_samples"), "kernel", units),
        operators=_changes(_pooled(before, "operator_samples"), _pooled(after, "operator_samples"), "operator", units),
        notes=notes,
    )


def _units(side: Sequence[RankResult], unit: str) -> float:
    if unit == "second":
        return sum(max(result.summary.span_ns, 1) for result in side) / 1e9
    total = 0.0
    for result in side:
        steps = result.summary.steps
        by_mark = steps.source == "ProfilerStep" or not steps.median_ns
        total += len(steps.steps) if by_mark else result.summary.span_ns / (steps.median_ns or 1)
    return max(total, 1.0)


def _step_durations(side: Sequence[RankResult]) -> Integers:
    return np.array([step.duration_ns for result in side for step in result.summary.steps.whole], np.int64)


def _as_samples(durations: Integers) -> Samples:
    return Samples(len(durations), int(durations.sum()), durations)


def _pooled(side: Sequence[RankResult], field: str) -> dict[str, Samples]:
    found: dict[str, list[Samples]] = {}
    for result in side:
        table: dict[str, Samples] = getattr(result, field)
        for name, one in table.items():
            found.setdefault(name, []).append(one)
    return {
        name: Samples(
            sum(one.count for one in several),
            sum(one.total_ns for one in several),
            np.concatenate([one.duration_ns for one in several]),
        )
        for name, several in found.items()
    }


def _changes(
    before: dict[str, Samples], after: dict[str, Samples], what: str, units: tuple[float, float]
) -> list[Change]:
    """What differs first, by how much it costs more or less."""
    totals = [
        sum(one.total_ns for one in side.values()) / unit for side, unit in zip((before, after), units, strict=True)
    ]
    least_ns = _LEAST_SHARE * max(*totals, 1)
    names = [
        name
        for name in before.keys() | after.keys()
        if max(_per_unit(before.get(name), units[0]), _per_unit(after.get(name), units[1])) >= least_ns
    ]
    in_both = [
        name
        for name in names
        if name in before and name in after and len(before[name].duration_ns) and len(after[name].duration_ns)
    ]
    tests = {name: rank_test(before[name].duration_ns, after[name].duration_ns) for name in in_both}
    sure = dict(zip(in_both, adjusted([tests[name].probability for name in in_both]), strict=True))
    rows = []
    for name in names:
        one, other = before.get(name), after.get(name)
        effect = tests[name].effect if name in tests else None
        rows.append(_change(name, what, (one, other), units, (effect, sure.get(name, 1.0))))
    return sorted(rows, key=lambda row: (row.verdict == "same", -abs(row.change_us), row.name))


def _per_unit(one: Samples | None, units: float) -> float:
    return one.total_ns / units if one is not None else 0.0


def _change(
    name: str,
    what: str,
    sides: tuple[Samples | None, Samples | None],
    units: tuple[float, float],
    test: tuple[float | None, float],
) -> Change:
    before, after = sides
    verdict, sure, ratio = "same", "certain", None
    if before is None or after is None:
        verdict = "new" if before is None else "gone"
        count = (after or before or Samples(0, 0, np.zeros(0, np.int64))).count
        sure = "certain" if count >= _FEWEST_CALLS else "too few calls"
    else:
        ratio = (after.total_ns / after.count) / max(before.total_ns / before.count, 1e-9)
        verdict, sure = _judge(before, after, units, ratio, test)
    return Change(
        name=name,
        what=what,
        verdict=verdict,
        sure=sure,
        before_us=_per_unit(before, units[0]) / 1000,
        after_us=_per_unit(after, units[1]) / 1000,
        before_calls=before.count / units[0] if before else 0.0,
        after_calls=after.count / units[1] if after else 0.0,
        mean_ratio=ratio,
        effect=test[0],
    )


def _judge(
    before: Samples, after: Samples, units: tuple[float, float], ratio: float, test: tuple[float | None, float]
) -> tuple[str, str]:
    """The verdict, and how sure it is."""
    calls = (after.count / units[1]) / (before.count / units[0])
    if abs(ratio - 1) < _CHANGED:
        if abs(calls - 1) < _CHANGED:
            return "same", "certain"
        verdict = "more calls" if calls > 1 else "fewer calls"
        return verdict, "certain" if min(before.count, after.count) >= _FEWEST_CALLS else "too few calls"
    verdict = "slower" if ratio > 1 else "faster"
    effect, probability = test
    if effect is None or min(before.count, after.count) < _FEWEST_CALLS:
        return verdict, "too few calls"
    clear = effect if ratio > 1 else 1 - effect
    if probability < _CERTAIN and clear >= _CLEAR_EFFECT:
        return verdict, "certain"
    return verdict, "likely" if probability < _LIKELY and clear > 0.5 else "unsure"
