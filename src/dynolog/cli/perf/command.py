"""dyno perf."""

import argparse

from dynolog.cli.option_types import pids, positive_seconds
from dynolog.rpc.client import Target


class Perf:
    """Count events of processor and kernel once (`stat`), or see what this machine can count (`list`).

    Works on this machine, without the daemon.
    """

    name = "perf"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """What to do, and what to count where."""
        parser.add_argument(
            "action", choices=("list", "stat"), metavar="list|stat", help="see what can be counted, or count"
        )
        parser.add_argument("filter", nargs="?", default="", metavar="TEXT", help="list: events with this text only")
        counting = parser.add_argument_group("stat")
        counting.add_argument(
            "-e", "--events", default="", metavar="LIST", help="comma list, as in `--perf_metrics` of the daemon"
        )
        counting.add_argument(
            "-d", "--duration", type=positive_seconds, default=5.0, metavar="S", help="how long; Ctrl-C ends it too (5)"
        )
        where = counting.add_mutually_exclusive_group()
        where.add_argument(
            "--pids", type=pids, default=[], metavar="PIDS", help="these processes and their new children"
        )
        where.add_argument("--cgroup", default="", metavar="PATH", help="a cgroup, such as /system.slice/ssh.service")
        where.add_argument("--cpus", default="", metavar="LIST", help="these CPUs, such as 0-3,8 (all)")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Do it here."""
        if arguments.action == "list":
            from dynolog.cli.perf.list import show  # noqa: PLC0415 - each loads its own part only

            return show(arguments)
        from dynolog.cli.perf.stat import count  # noqa: PLC0415

        return count(arguments)
