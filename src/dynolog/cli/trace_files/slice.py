"""dyno trace slice."""

import argparse
import re
from functools import partial
from typing import TYPE_CHECKING

from dynolog.cli.exit_codes import DONE
from dynolog.cli.trace_files.common_options import (
    add_output,
    needs_analysis,
    output_name,
    print_exported,
    progress_bar,
    readable,
    replacing,
    usage,
)
from dynolog.rpc.client import Target

if TYPE_CHECKING:
    from dynolog.analysis.reading.columns import TraceColumns

_TIME = re.compile(r"(-?\d+(?:\.\d+)?)(us|ms|s)?")
_UNIX = re.compile(r"@(\d+)(?:\.(\d{1,9}))?")
_UNITS_NS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_STEPS = re.compile(r"(\d+)(?:-(\d+))?")


class TraceSlice:
    """Cut a time or some steps out of a trace.

    Works on files, without the daemon. Events that reach into the time are kept whole.
    """

    name = "trace slice"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """From when to when."""
        add_output(parser, "slice")
        what = "ms after the trace's begin, or with a unit as 1.5s, or @ and Unix seconds"
        parser.add_argument("--from", dest="begin", type=moment, metavar="TIME", help=what)
        parser.add_argument("--to", dest="end", type=moment, metavar="TIME", help="the same (the trace's end)")
        parser.add_argument("--steps", type=steps, metavar="N-M", help="these steps, both included, instead of a time")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Cut."""
        if arguments.steps is None and arguments.begin is None and arguments.end is None:
            raise usage("what to cut out? Give --from, --to or --steps")
        if arguments.steps is not None and (arguments.begin is not None or arguments.end is not None):
            raise usage("--steps is a time already: leave out --from and --to")
        needs_analysis()
        from dynolog.analysis.editing.edits import keep_time  # noqa: PLC0415 - numpy
        from dynolog.analysis.editing.exporting import export, survey  # noqa: PLC0415

        path: str = arguments.file
        output = output_name(arguments, "slice")
        with (
            readable(path),
            replacing(output, [path], force=arguments.force),
            progress_bar([path], passes=2, quiet=arguments.json) as show,
        ):
            columns = survey(path, partial(show, path))
            from_ns, to_ns = _window(arguments, columns)
            base_ns = columns.head.base_ns
            exported = export(
                path,
                output,
                filters=[keep_time(from_ns - base_ns, to_ns - base_ns)],
                columns=columns,
                progress=partial(show, path),
            )
        print_exported(exported, as_json=arguments.json)
        return DONE


def _window(arguments: argparse.Namespace, columns: "TraceColumns") -> tuple[int, int]:
    span = columns.span_ns
    if span is None:
        raise usage(f"{arguments.file} holds no complete event: there is nothing to cut out")
    if arguments.steps is not None:
        from dynolog.analysis.rank.step_spans import find_steps  # noqa: PLC0415 - numpy

        found = find_steps(columns)
        first, last = arguments.steps
        chosen = [step for step in found.spans if first <= step.number <= last]
        if not chosen:
            there = (
                f"there are {found.spans[0].number} to {found.spans[-1].number}" if found.spans else "it tells no steps"
            )
            raise usage(
                f"{arguments.file} has no step {first}" + (f" to {last}" if last > first else "") + f": {there}"
            )
        return min(step.begin_ns for step in chosen), max(step.end_ns for step in chosen)
    begin, end = (
        None if value is None else value[1] + (0 if value[0] else span[0]) for value in (arguments.begin, arguments.end)
    )
    from_ns, to_ns = span[0] if begin is None else begin, span[1] if end is None else end
    if from_ns > min(to_ns, span[1]) or to_ns < span[0]:
        raise usage(f"that time is not in {arguments.file}, which lasts {(span[1] - span[0]) / 1e6:,.3f} ms")
    return from_ns, to_ns


def moment(text: str) -> tuple[bool, int]:
    """Whether it is absolute, and ns. Raises argparse.ArgumentTypeError."""
    if match := _UNIX.fullmatch(text):
        return True, int(match[1]) * 10**9 + int((match[2] or "0").ljust(9, "0"))
    if match := _TIME.fullmatch(text):
        return False, round(float(match[1]) * _UNITS_NS[match[2] or "ms"])
    raise argparse.ArgumentTypeError(f"{text!r} is no time: 250 (ms after the begin), 1.5s, or @1719853884.25")


def steps(text: str) -> tuple[int, int]:
    """First and last. Raises argparse.ArgumentTypeError."""
    match = _STEPS.fullmatch(text)
    if not match or int(match[2] or match[1]) < int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of steps: 3 or 3-5")
    return int(match[1]), int(match[2] or match[1])
