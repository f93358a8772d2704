"""dyno analyze."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dynolog.cli.exit_codes import DONE, CommandError
from dynolog.cli.printable import printable
from dynolog.cli.reply_text import print_json
from dynolog.cli.trace_files.common_options import needs_analysis, progress_bar, readable
from dynolog.cli.trace_files.merge import ranks
from dynolog.rpc.client import Target

if TYPE_CHECKING:
    from dynolog.analysis.engine import Show
    from dynolog.analysis.rank.rank_summary import RankResult


class Analyze:
    """Say where the time of a job went, from its traces: what stands out first, then tables.

    Works on files, without the daemon. Exit code 0 also when nothing stands out; 1 when no file can be read.
    """

    name = "analyze"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which traces, compared with which, and where the answer goes."""
        parser.epilog = (
            "Exit codes: 0 analysed, whether something stands out or not; 1 no trace, or none that can be read; 2 usage. "
            "docs/analysis.md says what every finding and number means."
        )
        parser.add_argument("files", nargs="+", metavar="FILE|DIR", help="traces of one job, or folders of them")
        parser.add_argument(
            "--against", action="append", default=[], metavar="OTHER", help="an earlier trace or folder to compare with"
        )
        parser.add_argument(
            "--html", default="", metavar="OUT", help="also write a report that a browser opens offline"
        )
        parser.add_argument(
            "--ranks", type=ranks, default=(), metavar="LIST", help="the files' ranks, in their order, such as 0,1,2"
        )
        parser.add_argument(
            "--modules", action="store_true", help="times by module of the model, from Python frames (reads slower)"
        )
        parser.add_argument(
            "--engine",
            default="",
            metavar="dask://HOST:PORT",
            help="read the files on the workers of this Dask cluster, where the paths must exist",
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Read, judge, print."""
        needs_analysis()
        _require_page(arguments.html)
        from dynolog.analysis.analysis import analyse  # noqa: PLC0415 - numpy

        notes: list[str] = []
        listed = _listed((*arguments.files, *arguments.against)) if not arguments.engine else []
        with progress_bar(listed, quiet=arguments.json) as show:
            read = partial(_read, engine=arguments.engine, modules=arguments.modules, show=show, notes=notes)
            results = read(arguments.files, arguments.ranks)
            against = read(arguments.against, arguments.ranks) if arguments.against else []
        analysis = analyse(results, against, notes)
        if arguments.json:
            print_json(analysis)
        else:
            from dynolog.cli.analyze.report import lines  # noqa: PLC0415 - numpy

            for line in lines(analysis):
                print(printable(line))
        # Last: an answer that took minutes is not lost because the page cannot be written.
        if arguments.html:
            from dynolog.analysis.report.html_report import write_html  # noqa: PLC0415 - only when asked for

            with readable(arguments.html):
                write_html(analysis, arguments.html)
            if not arguments.json:
                print(f"report: {printable(arguments.html)}")
        return DONE


def _require_page(path: str) -> None:
    """Raises CommandError for a file that is no report: after `--html` a trace is easily the next word."""
    try:
        with open(path, "rb") as file:
            begin = file.read(64)
    except OSError:
        return  # not there; what else is the matter is said when it is written
    if begin and not begin.lstrip().lower().startswith(b"<!doctype html"):
        raise CommandError(f"--html: {path} is there already and is no page: name another file")


def _read(
    paths: Sequence[str], given: Sequence[int], *, engine: str, modules: bool, show: "Show", notes: list[str]
) -> "list[RankResult]":
    """The results of all files that can be read; what is wrong with the others goes into the notes."""
    from dynolog.analysis.engine import NotRead, read_ranks  # noqa: PLC0415 - numpy

    with readable(", ".join(paths)):
        folder, outcomes = read_ranks(paths, given, engine=engine, modules=modules, show=show)
    if not outcomes:
        raise CommandError(
            f"no trace in {', '.join(paths)}: give files that PyTorch wrote (.json, .json.gz), or their folder"
        )
    notes += folder.notes
    if folder.others:
        notes.append(f"{len(folder.others)} other files were left aside, such as {os.path.basename(folder.others[0])}")
    bad = [outcome for outcome in outcomes if isinstance(outcome, NotRead)]
    results = [outcome for outcome in outcomes if not isinstance(outcome, NotRead)]
    if not results:
        raise CommandError(f"{bad[0].path}: {bad[0].why}")
    notes += [f"{outcome.path} was left out: {outcome.why}" for outcome in bad]
    return results


def _listed(paths: Sequence[str]) -> list[str]:
    """The files that may be read, for the progress bar's length."""
    found: list[str] = []
    for path in paths:
        found += [entry.path for entry in os.scandir(path) if entry.is_file()] if os.path.isdir(path) else [path]
    return found
