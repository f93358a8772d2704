"""dyno gpus."""

import argparse

from dynolog.cli.daemon_kind import asking_for_ours
from dynolog.cli.exit_codes import DONE, FAILED
from dynolog.cli.gpus.table import gpus_table, no_gpus, source_lines
from dynolog.cli.printable import printable
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import terminal_columns
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetGpus, GpusReply


class Gpus:
    """List the GPUs: use, memory, power, health, and the job, user and processes on each.

    Exit code 1 when there is none.
    """

    name = "gpus"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print them, or why there is none."""
        with asking_for_ours(target, "GPUs"):
            reply = call(target, GetGpus(), GpusReply)
        if arguments.json:
            print_json(reply)
        elif reply.devices:
            print(gpus_table(reply, terminal_columns()))
            print("\n".join(map(printable, source_lines(reply.gpu, reply.wall_ns))))
        else:
            print(printable(no_gpus(reply.gpu)))
        return DONE if reply.devices else FAILED
