"""dyno exporters."""

import argparse

from dynolog.cli.daemon_kind import asking_for_ours
from dynolog.cli.exit_codes import DONE, FAILED, UNREACHABLE, CommandError
from dynolog.cli.exporters_report import NONE, exporters_report
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import terminal_columns
from dynolog.model.status import DaemonStatus, ExporterState
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetStatus, StatusReply


class Exporters:
    """Show where records go: state, last success, queue, spool, what was sent and what was lost, and why.

    Exit code 1 when no exporter is on, or one does not deliver.
    """

    name = "exporters"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print the table, and what is wrong."""
        daemon = _ask(target)
        if arguments.json:
            print_json({"wall_ns": daemon.wall_ns, "exporters": daemon.exporters})
        elif daemon.exporters:
            print(exporters_report(daemon.exporters, daemon.wall_ns, terminal_columns()))
        else:
            print(NONE)
        troubled = any(status.state in (ExporterState.RETRYING, ExporterState.FAILING) for status in daemon.exporters)
        return FAILED if troubled or not daemon.exporters else DONE


def _ask(target: Target) -> DaemonStatus:
    with asking_for_ours(target, "exporters"):
        daemon = call(target, GetStatus(verbose=True), StatusReply).daemon
    if daemon is None:
        raise CommandError("this daemon tells nothing about exporters: it is the original C++ dynolog", UNREACHABLE)
    return daemon
