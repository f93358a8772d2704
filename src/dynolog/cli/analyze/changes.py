"""The tables of dyno analyze that are about two recordings."""

from collections.abc import Iterator

from dynolog.analysis.job.comparing import Change, Comparison
from dynolog.analysis.wording import ms
from dynolog.cli.analyze.layout import name
from dynolog.cli.table import table

_TOP = 10
# What the numbers of a row need beside a name.
_NUMBERS = 78


def comparison_tables(comparison: Comparison) -> Iterator[str]:
    """What changed."""
    unit = comparison.unit
    if (steps := comparison.steps) is not None:
        word = {"same": "no clear change"}.get(steps.verdict, f"{steps.verdict}, {steps.sure}")
        yield f"Compared: a step lasts {ms(steps.after_us * 1e3)}, before {ms(steps.before_us * 1e3)}: {word}"
    for what, changes in (("Kernels", comparison.kernels), ("Operators", comparison.operators)):
        rows = [_change(row) for row in changes if row.verdict != "same"][:_TOP]
        if rows:
            yield f"{what} that changed, per {unit}\n" + table(
                ("NAME", "WHAT", "BEFORE", "NOW", "CHANGE", "A CALL", "SURE"), rows, right=range(2, 6)
            )
        elif changes:
            yield f"{what}: none changed"
    for note in comparison.notes:
        yield f"note: {note}"


def _change(row: Change) -> tuple[str, ...]:
    ratio = "-" if row.mean_ratio is None else f"{row.mean_ratio:.2f} ×"
    times = (ms(row.before_us * 1e3), ms(row.after_us * 1e3), f"{row.change_us / 1e3:+,.3f} ms")
    return (name(row.name, _NUMBERS), row.verdict, *times, ratio, row.sure)
