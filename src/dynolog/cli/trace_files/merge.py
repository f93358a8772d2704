"""dyno trace merge."""

import argparse

from dynolog.cli.exit_codes import DONE
from dynolog.cli.printable import printable
from dynolog.cli.quantities import microseconds
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import table
from dynolog.cli.trace_files.common_options import (
    add_force,
    needs_analysis,
    print_exported,
    progress_bar,
    readable,
    replacing,
)
from dynolog.rpc.client import Target


class TraceMerge:
    """Put the traces of several ranks on one clock and into one file.

    Works on files, without the daemon. Clocks: from the `manifest.json` of `dyno gputrace --hosts`, else from collectives.
    """

    name = "trace merge"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which files, and by which clock."""
        parser.add_argument("files", nargs="+", metavar="FILE|DIR", help="traces of one job, or a folder of them")
        parser.add_argument("-o", "--output", required=True, metavar="OUT", help="compressed when it ends in .gz")
        add_force(parser)
        parser.add_argument(
            "--align",
            choices=("auto", "manifest", "collectives", "none"),
            default="auto",
            help="what tells how far clocks are apart (auto: the manifest, nothing on one host, else collectives)",
        )
        parser.add_argument(
            "--ranks", type=ranks, default=(), metavar="LIST", help="the files' ranks, in their order, such as 0,1,2"
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Merge."""
        needs_analysis()
        from dynolog.analysis.job.merging import PASSES, merge  # noqa: PLC0415 - numpy
        from dynolog.analysis.reading.trace_folder import scan  # noqa: PLC0415

        with readable(", ".join(arguments.files)):
            folder = scan(arguments.files, arguments.ranks)
            paths = [head.path for head in folder.traces]
            taken = replacing(arguments.output, paths, force=arguments.force)
            with taken, progress_bar(paths, passes=PASSES, quiet=arguments.json) as show:
                merged = merge(folder.traces, arguments.output, align=arguments.align, progress=show)
        if arguments.json:
            print_json(merged)
            return DONE
        rows = []
        for clock in merged.clocks:
            residual = "-" if clock.residual_ns is None else microseconds(clock.residual_ns / 1000)
            rows.append(
                (str(clock.rank), clock.host or "-", f"{clock.offset_ns / 1000:+,.3f} µs", clock.source, residual)
            )
        print(table(("RANK", "HOST", "CLOCK AHEAD", "FROM", "RESIDUAL"), rows, right=(0, 2, 4)))
        print_exported(merged.exported, as_json=False)
        for note in folder.notes:
            print(printable(f"note: {note}"))
        return DONE


def ranks(text: str) -> tuple[int, ...]:
    """A comma list of ranks. Raises argparse.ArgumentTypeError."""
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks: 0,1,2")
    return tuple(map(int, parts))
