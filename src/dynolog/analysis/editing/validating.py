"""Whether a trace is whole and right, and what a reader should know of it."""

from collections.abc import Iterator

import msgspec

from dynolog.analysis.editing.exporting import Progress, survey
from dynolog.analysis.editing.lanes import lanes_of
from dynolog.analysis.editing.viewer_limits import lose_digits, viewer_number
from dynolog.analysis.rank.launches import kernel_share
from dynolog.analysis.reading.columns import TraceColumns
from dynolog.analysis.reading.read_report import Problem
from dynolog.profiling.trace_bytes import TraceUnreadable

# Below this share of launches that left a kernel, kernels were lost.
_FEW = 0.5


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`faults` make the file invalid; `notes` are true of good files too. `problems` are places, the first hundred."""

    path: str
    events: int = 0
    faults: list[str] = []
    problems: list[Problem] = []
    notes: list[str] = []

    @property
    def valid(self) -> bool:
        """Whether it is a whole trace in strict JSON."""
        return not self.faults


def validate(path: str, progress: Progress | None = None) -> Verdict:
    """Read a trace to its end; a file that cannot be read is a verdict, too."""
    try:
        columns = survey(path, progress)
    except TraceUnreadable as error:
        return Verdict(path=path, faults=[error.reason])
    except OSError as error:
        return Verdict(path=path, faults=[f"cannot be read: {error.strerror or error}"])
    report = columns.report
    faults = list(report.sentences())
    faults += [
        f"{number:,} entries left out: {why}"
        for why, number in report.skipped.items()
        if why.startswith(("phase", "begin"))
    ]
    return Verdict(path=path, events=report.events, faults=faults, problems=report.problems, notes=list(notes(columns)))


def notes(columns: TraceColumns) -> Iterator[str]:
    """What is no fault of the file, but good to know."""
    if not len(columns):
        yield "no complete event: the trace is empty"
        return
    if columns.head.rank is None and "ranks" not in columns.head.members:
        yield "the file does not say its rank (no distributedInfo)"
    if moved := lanes_of(columns).moved:
        yield f"{moved:,} events overlap others of their track: viewers drop them; `dyno trace convert` gives them lanes of their own"
    if lose_digits(columns.begin_ns - columns.head.base_ns, columns.duration_ns):
        yield "viewers round times this large with decimals, and drop what then seems to overlap: `dyno trace convert` makes them smaller"
    if beyond := sum(viewer_number(number) is not number for number in (*columns.processes, *columns.threads)):
        yield (
            f"{beyond:,} processes or threads have negative numbers, or of more than 32 bits: viewers mix them up with others; "
            "`dyno trace convert` gives them numbers that viewers know"
        )
    if (share := kernel_share(columns)) is not None and share < _FEW:
        yield (
            f"only {share:.0%} of the kernel launches left a kernel: the device's records are incomplete, "
            "or it lagged by more than the recording lasts"
        )
