"""What the commands on trace files share: their arguments, their progress, and what they say of what they wrote."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dynolog.analysis.reading.derived_names import derived_name, is_derived_name
from dynolog.cli.exit_codes import USAGE, CommandError
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, size
from dynolog.cli.reply_text import print_json

if TYPE_CHECKING:
    from dynolog.analysis.editing.exporting import Exported

T = TypeVar("T")


def needs_analysis() -> None:
    """Raises CommandError that says what to install."""
    try:
        import numpy  # noqa: F401, PLC0415 - optional, and 80 ms
    except ImportError:
        raise CommandError(
            f"reading traces needs numpy: pip install 'dynolog[analysis]', or install numpy for {sys.executable}"
        ) from None


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """`FILE -o OUT`, for commands that write one file from one."""
    parser.add_argument("file", metavar="FILE", help="the trace: .json or .json.gz, told by its bytes")
    parser.add_argument(
        "-o",
        "--output",
        default="",
        metavar="OUT",
        help=f"what to write, compressed when it ends in .gz (FILE without its ending, and .{what}.json.gz)",
    )
    add_force(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    """`--force`."""
    parser.add_argument(
        "--force", action="store_true", help="replace what is there already, though it may be an original"
    )


def output_name(arguments: argparse.Namespace, what: str) -> str:
    """Where to write."""
    if arguments.output:
        return str(arguments.output)
    return derived_name(arguments.file, what)


@contextlib.contextmanager
def replacing(output: str, inputs: Sequence[str], *, force: bool) -> Iterator[None]:
    """Says it when the block has put another file in the place of one that was there.

    Raises CommandError where that may be an original: by its name it was not made of a trace, nor is it a merged one. What is read is
    refused by whoever writes, with words of its own.
    """
    was_there = os.path.lexists(output)
    if was_there and not force and os.path.isfile(output) and not _was_made(output):
        is_input = any(os.path.exists(path) and os.path.samefile(path, output) for path in inputs)
        if not is_input:
            raise CommandError(f"{output} is there already and may be an original: name another file, or say --force")
    yield
    if was_there:
        print(printable(f"note: replaces {output}, which was there"), file=sys.stderr)


def _was_made(path: str) -> bool:
    from dynolog.analysis.reading.trace_folder import read_head  # noqa: PLC0415 - only for a file that is there

    if is_derived_name(path) or not os.path.getsize(path):
        return True
    head = read_head(path)
    return head is not None and head.merged


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
    """Errors of reading as one line. What cannot be written has a line of its own."""
    from dynolog.profiling.trace_bytes import TraceUnreadable  # noqa: PLC0415 - only for commands on files

    try:
        yield
    except TraceUnreadable as error:
        raise CommandError(f"{path}: {error.reason}") from error
    except OSError as error:
        raise CommandError(f"{error.filename or path}: {error.strerror or error}") from error


@contextlib.contextmanager
def progress_bar(paths: Sequence[str], *, passes: int = 1, quiet: bool = False) -> Iterator[Callable[[str, int], None]]:
    """A bar with MB/s on a terminal, when rich is there; what it gives is told a file and how many more of its bytes were read.

    A file that is named twice, and each of several passes, is read anew: the bar only ever goes forward.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _path, _size_bytes: None
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - optional, 60 ms
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn  # noqa: PLC0415
    except ImportError:
        yield lambda _path, _size_bytes: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        total = sum(os.path.getsize(path) for path in paths if os.path.exists(path)) * passes
        task = bar.add_task("reading", total=total)

        def show(path: str, more_bytes: int) -> None:
            bar.update(task, description=printable(os.path.basename(path)), advance=more_bytes)

        yield show


def read_each(
    work: Callable[[str, Callable[[int], None] | None], T], paths: Sequence[str], show: Callable[[str, int], None]
) -> list[T]:
    """The result of `work` for each file: one by one with progress within it, several large ones in processes of their own."""
    from dynolog.analysis.many import map_files  # noqa: PLC0415 - only for commands on files

    if len(paths) == 1:
        return [work(paths[0], partial(show, paths[0]))]
    results: list[T] = []
    for path, result in map_files(partial(_alone, work), paths):
        if os.path.exists(path):
            show(path, os.path.getsize(path))
        results.append(result)
    return results


def _alone(work: Callable[[str, Callable[[int], None] | None], T], path: str) -> T:
    return work(path, None)


def print_exported(exported: "Exported", *, as_json: bool) -> None:
    """What was written, and what must be known of it."""
    if as_json:
        print_json(exported)
        return
    share = 100 * exported.file_bytes_after / max(exported.file_bytes_before, 1)
    print(
        printable(
            f"{exported.output}: {count(exported.events_after, 'event')} of {exported.events_before:,}, "
            f"{size(exported.file_bytes_after)} of {size(exported.file_bytes_before)} ({share:.0f} %)"
        )
    )
    if exported.moved:
        print(f"{count(exported.moved, 'event')} overlapped others of their track and have lanes of their own now")
    for note in exported.notes:
        print(printable(f"note: {note}"))


def usage(sentence: str) -> CommandError:
    """Wrong arguments."""
    return CommandError(sentence, USAGE)
