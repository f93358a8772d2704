"""dyno trace info."""

import argparse
import time
from typing import TYPE_CHECKING

from dynolog.cli.exit_codes import DONE
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, microseconds, size
from dynolog.cli.reply_text import print_json
from dynolog.cli.trace_files.common_options import needs_analysis, progress_bar, read_each
from dynolog.rpc.client import Target

if TYPE_CHECKING:
    from dynolog.analysis.editing.trace_info import TraceInfo

_FIRST_YEAR_NS = 10**18


class InfoOfTrace:
    """Say what trace files hold: duration, rank, devices, steps, and how many events of each category.

    Works on files, without the daemon.
    """

    name = "trace info"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which files."""
        parser.add_argument("files", nargs="+", metavar="FILE", help="traces: .json or .json.gz, told by their bytes")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Describe each."""
        needs_analysis()
        from dynolog.analysis.editing.trace_info import info  # noqa: PLC0415 - numpy

        with progress_bar(arguments.files, quiet=arguments.json) as show:
            found = read_each(info, arguments.files, show)
        if arguments.json:
            print_json({"files": found})
        else:
            for facts in found:
                _print(facts)
        return DONE


def _print(facts: "TraceInfo") -> None:
    text = f", {size(facts.text_bytes)} of JSON" if facts.compressed else ""
    print(printable(f"{facts.path}: {count(facts.events, 'event')}, {size(facts.file_bytes)}{text}"))
    rows = [("duration", microseconds(facts.duration_ns / 1000))]
    if facts.begin_ns is not None and facts.begin_ns > _FIRST_YEAR_NS:
        begin = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(facts.begin_ns // 10**9))
        rows.append(("begin", f"{begin}.{facts.begin_ns % 10**9 // 10**6:03d} UTC"))
    if facts.rank is not None:
        world = f" of {facts.world_size}" if facts.world_size else ""
        rows.append(("rank", f"{facts.rank}{world}" + (f", {facts.backend}" if facts.backend else "")))
    if facts.host:
        rows.append(("host", facts.host))
    if facts.devices:
        rows.append(
            ("devices", ", ".join(f"{facts.devices.count(name)} × {name}" for name in dict.fromkeys(facts.devices)))
        )
    if facts.steps:
        rows.append(("steps", f"{facts.steps[0]} to {facts.steps[-1]} ({len(facts.steps)}, from {facts.steps_from})"))
    rows += [(name, f"{number:,}") for name, number in facts.categories.items()]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(printable(f"  {name:<{width}}  {value}"))
    for note in facts.notes:
        print(printable(f"  note: {note}"))
