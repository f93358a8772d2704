"""dyno trace convert."""

import argparse
from functools import partial

from dynolog.cli.exit_codes import DONE
from dynolog.cli.trace_files.common_options import (
    add_output,
    needs_analysis,
    output_name,
    print_exported,
    progress_bar,
    readable,
    replacing,
)
from dynolog.rpc.client import Target


class TraceConvert:
    """Write a trace anew as strict JSON that viewers open: repaired, with lanes for events that overlap.

    Works on files, without the daemon.
    """

    name = "trace convert"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Into what."""
        add_output(parser, "strict")
        parser.add_argument(
            "--base",
            choices=("auto", "keep", "absolute", "relative"),
            default="auto",
            help="times from the epoch, or from a baseTimeNanoseconds an hour before the first (auto: as they are, unless viewers "
            "would round them)",
        )
        parser.add_argument(
            "--top",
            choices=("object", "list"),
            default="object",
            help="list: events alone, their times absolute (object)",
        )
        parser.add_argument(
            "--keep-overlaps", action="store_true", help="leave overlapping events where they are: viewers drop them"
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Convert."""
        needs_analysis()
        from dynolog.analysis.editing.exporting import export, survey  # noqa: PLC0415 - numpy

        path: str = arguments.file
        output = output_name(arguments, "strict")
        with (
            readable(path),
            replacing(output, [path], force=arguments.force),
            progress_bar([path], passes=2, quiet=arguments.json) as show,
        ):
            columns = survey(path, partial(show, path))
            absolute = {"auto": None, "keep": not columns.head.base_ns, "absolute": True, "relative": False}
            exported = export(
                path,
                output,
                columns=columns,
                lanes=not arguments.keep_overlaps,
                absolute=absolute[arguments.base],
                bare_list=arguments.top == "list",
                progress=partial(show, path),
            )
        print_exported(exported, as_json=arguments.json)
        return DONE
