"""dyno status."""

import argparse
import sys

from dynolog.cli.exit_codes import DONE
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, gpu_pause
from dynolog.cli.reply_text import ask, show_answer
from dynolog.cli.target_words import command_for
from dynolog.model.errors import DynologError
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetStatus, ListProcesses, ProcessesReply, StatusReply


class Status:
    """Check that the daemon runs; with --verbose, how each of its parts fares.

    Exit code 0 whenever it answers.
    """

    name = "status"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """One switch."""
        parser.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            help="collectors, exporters, trainers, what the daemon costs, what is missing and how to get it",
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print the public dyno's two lines, then the rest when asked."""
        if arguments.json:
            show_answer(target, ask(target, GetStatus(verbose=arguments.verbose)), arguments, StatusReply)
            return DONE
        health = show_answer(target, ask(target, GetStatus()), arguments, StatusReply).status
        if arguments.verbose:
            _print_more(target)
            return DONE
        if health == 0:
            print("The GPU source fails: `dyno status --verbose` says why.")
        elif sys.stdout.isatty():  # for whoever does not know what 1 means
            print(
                f"A dynolog answers on {printable(str(target))}: `{command_for(target, 'status', '--verbose')}` says more."
            )
        told = _time_reply(target)
        if told.gpu_paused_until_wall_ns:
            print(gpu_pause(told.gpu_paused_until_wall_ns))
        if told.recent_troubles:
            what = count(told.recent_troubles, "trouble")
            print(f"{what} in the last hour: `{command_for(target, 'status', '--verbose')}` says what went wrong.")
        return DONE


def _time_reply(target: Target) -> StatusReply:
    """Pauses and troubles. A second question, because the plain answer is that of the public dynolog; which one ignores what is added to
    the question.
    """
    try:
        return call(target, GetStatus(time=True), StatusReply)
    except DynologError:  # it has just answered the plain question, which is what was asked
        return StatusReply(status=1)


def _print_more(target: Target) -> None:
    daemon = call(target, GetStatus(verbose=True), StatusReply).daemon
    if daemon is None:
        print("This daemon says no more of itself: it is the original C++ dynolog, or an older one.")
        return
    from dynolog.cli.status_report import report  # noqa: PLC0415 - plain `dyno status` does without it

    trainers = call(target, ListProcesses(), ProcessesReply).trainers
    print(report(daemon, trainers))
