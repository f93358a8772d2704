"""dyno trace shrink."""

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

_DEFAULT = "python,stacks,shapes"
_WORDS = ("python", "stacks", "shapes", "args", "flows", "overhead")


class TraceShrink:
    """Make a trace smaller: without Python frames, stacks and shapes, or what you choose.

    Works on files, without the daemon, in memory far smaller than the file.
    """

    name = "trace shrink"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """What to leave out."""
        add_output(parser, "small")
        parser.add_argument(
            "--drop",
            type=words,
            default=words(_DEFAULT),
            metavar="LIST",
            help=f"any of {', '.join(_WORDS)} ({_DEFAULT}); args are all arguments",
        )
        parser.add_argument(
            "--min-us", type=float, default=0.0, metavar="US", help="leave out complete events that are shorter (0)"
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Shrink."""
        needs_analysis()
        from dynolog.analysis.editing.edits import DROPPABLE_ARGUMENTS, DropArguments, drop_events  # noqa: PLC0415 - numpy
        from dynolog.analysis.editing.exporting import export  # noqa: PLC0415
        from dynolog.analysis.reading.categories import Category  # noqa: PLC0415 - only for commands on files

        drop: frozenset[str] = arguments.drop
        kinds = {"python": Category.PYTHON_FUNCTION, "overhead": Category.OVERHEAD}
        names = [name for word in sorted(drop & DROPPABLE_ARGUMENTS.keys()) for name in DROPPABLE_ARGUMENTS[word]]
        filters = [
            drop_events(
                [kind for word, kind in kinds.items() if word in drop],
                flows="flows" in drop,
                shorter_than_ns=round(arguments.min_us * 1000),
            )
        ]
        path: str = arguments.file
        output = output_name(arguments, "small")
        with (
            readable(path),
            replacing(output, [path], force=arguments.force),
            progress_bar([path], quiet=arguments.json) as show,
        ):
            exported = export(
                path,
                output,
                filters=filters,
                changes=[DropArguments(None if "args" in drop else names)],
                progress=partial(show, path),
            )
        print_exported(exported, as_json=arguments.json)
        return DONE


def words(text: str) -> frozenset[str]:
    """A comma list of what can be dropped. Raises argparse.ArgumentTypeError."""
    given = frozenset(word for word in text.split(",") if word)
    if unknown := given.difference(_WORDS):
        raise argparse.ArgumentTypeError(f"{min(unknown)!r} cannot be dropped: there are {', '.join(_WORDS)}")
    return given
