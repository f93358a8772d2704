"""dyno ps."""

import argparse

from dynolog.cli.daemon_kind import asking_for_ours
from dynolog.cli.exit_codes import DONE, FAILED
from dynolog.cli.option_types import job, pids
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import terminal_columns
from dynolog.cli.trainers_table import no_trainers, trainers_table
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import ListProcesses, ProcessesReply


class Ps:
    """List the trainers: PyTorch processes that can be traced.

    Exit code 1 when there is none.
    """

    name = "ps"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which trainers."""
        parser.add_argument("--job-id", type=job, default=(0, ""), metavar="JOB", help="only those of this job")
        parser.add_argument("--pids", type=pids, default=[], metavar="PID,...", help="only these")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print them, or why there is none."""
        number, text = arguments.job_id
        job_text = text or (str(number) if number else "")
        chosen = [pid for pid in arguments.pids if pid]
        with asking_for_ours(target, "trainers"):
            reply = call(target, ListProcesses(job=job_text, pids=chosen), ProcessesReply)
        if arguments.json:
            print_json(reply)
        elif reply.trainers:
            print(trainers_table(reply.trainers, terminal_columns()))
        elif job_text or chosen:
            print("No trainer of that job or with that pid is registered: `dyno ps` lists all that are.")
        else:
            print(no_trainers(ipc_enabled=reply.ipc_enabled))
        return DONE if reply.trainers else FAILED
