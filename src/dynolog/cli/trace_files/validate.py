"""dyno trace validate."""

import argparse

from dynolog.cli.exit_codes import DONE, FAILED
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count
from dynolog.cli.reply_text import print_json
from dynolog.cli.trace_files.common_options import needs_analysis, progress_bar, read_each
from dynolog.rpc.client import Target

_SHOWN = 20


class TraceValidate:
    """Check that trace files are whole and right; every problem with its place.

    Works on files, without the daemon. Exit code 1 when one of them is not.
    """

    name = "trace validate"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which files."""
        parser.add_argument("files", nargs="+", metavar="FILE", help="traces: .json or .json.gz, told by their bytes")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Judge each."""
        needs_analysis()
        from dynolog.analysis.editing.validating import validate  # noqa: PLC0415 - numpy

        with progress_bar(arguments.files, quiet=arguments.json) as show:
            verdicts = read_each(validate, arguments.files, show)
        if arguments.json:
            print_json({"files": verdicts})
        else:
            for verdict in verdicts:
                _print(verdict.path, verdict.events, verdict.faults, verdict.notes)
                for problem in verdict.problems[:_SHOWN]:
                    line = f"line {problem.line:,}, " if problem.line else ""
                    print(printable(f"  {line}byte {problem.offset_bytes:,}: {problem.what}"))
                if len(verdict.problems) > _SHOWN:
                    print(f"  and more places; --json has the first {len(verdict.problems)}")
        return DONE if all(verdict.valid for verdict in verdicts) else FAILED


def _print(path: str, events: int, faults: list[str], notes: list[str]) -> None:
    print(printable(f"{path}: {'not valid' if faults else 'valid'}, {count(events, 'event')}"))
    for fault in faults:
        print(printable(f"  {fault}"))
    for note in notes:
        print(printable(f"  note: {note}"))
