"""dyno dcgm-pause and dcgm-resume: hand the GPU's profiling hardware to another tool for a while."""

import argparse

from dynolog.cli.exit_codes import DONE, CommandError
from dynolog.cli.option_types import positive
from dynolog.cli.reply_text import ask, show_answer
from dynolog.rpc.client import Target
from dynolog.rpc.messages import BoolReply, DcgmProfPause, DcgmProfResume

NOT_DONE = "the daemon does not profile a GPU, or its driver does not answer; `dyno gpus` tells"


class DcgmPause:
    """Pause DCGM profiling, so that tools such as Nsight Compute can use the GPU's counters.

    Exit code 1 when there is none to pause.
    """

    name = "dcgm-pause"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """The time after which it goes on by itself."""
        parser.add_argument("--duration-s", type=positive, default=300, metavar="S", help="seconds to pause (300)")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Ask for it and print the answer."""
        return _send(arguments, target, DcgmProfPause(duration_s=arguments.duration_s))


class DcgmResume:
    """Resume DCGM profiling now."""

    name = "dcgm-resume"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Ask for it and print the answer."""
        return _send(arguments, target, DcgmProfResume())


def _send(arguments: argparse.Namespace, target: Target, request: DcgmProfPause | DcgmProfResume) -> int:
    if show_answer(target, ask(target, request), arguments, BoolReply).status:
        return DONE
    raise CommandError(f"nothing was done: {NOT_DONE}")
