"""dyno metrics."""

import argparse

from dynolog.cli.daemon_kind import asking_for_ours
from dynolog.cli.exit_codes import DONE, CommandError
from dynolog.cli.metric_filter import matches
from dynolog.cli.metrics_table import catalogue_table, chosen, values_table
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import terminal_columns
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import CatalogueReply, GetMetrics, ListMetrics, MetricsReply


class Metrics:
    """Print the latest values; with --list, the metrics that this daemon knows.

    Exit code 1 when no metric matches.
    """

    name = "metrics"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which metrics."""
        add_filters(parser)
        parser.add_argument(
            "--list", action="store_true", help="print the catalogue: every metric, its unit and meaning"
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print values or the catalogue."""
        if arguments.list:
            return _print_catalogue(arguments, target)
        reply = latest(target, arguments)
        if arguments.json:
            print_json(reply)
        elif reply.records:
            print(values_table(reply, terminal_columns()))
        if not reply.records:
            arguments.printed = True
            raise CommandError(no_values(arguments))
        return DONE


def add_filters(parser: argparse.ArgumentParser) -> None:
    """The options that `metrics` and `watch` share."""
    parser.add_argument(
        "--filter", default="", metavar="TEXT", help="only keys with this text, or like this: 'rx_*.eth?'"
    )
    parser.add_argument("--source", default="", help="only records of this source")
    parser.set_defaults(reported=True)


def latest(target: Target, arguments: argparse.Namespace) -> MetricsReply:
    """The latest records that pass the filters."""
    with asking_for_ours(target, "metrics"):
        reply = call(target, GetMetrics(source=arguments.source), MetricsReply)
    arguments.reported = bool(reply.records)
    return chosen(reply, arguments.filter)


def no_values(arguments: argparse.Namespace) -> str:
    """Why there is nothing to see."""
    if (arguments.filter and arguments.reported) or arguments.source:
        what = f"like {arguments.filter!r}" if arguments.filter else "at all"
        where = f" of source {arguments.source!r}" if arguments.source else ""
        return (
            f"no value {what}{where}: `dyno metrics --list` has every metric, `dyno status --verbose` every collector"
        )
    return (
        "no values yet: the first report comes when one interval is over (--reporting_interval_s, 60 s unless set); "
        "`dyno status --verbose` shows the collectors"
    )


def _print_catalogue(arguments: argparse.Namespace, target: Target) -> int:
    with asking_for_ours(target, "metrics"):
        reply = call(target, ListMetrics(), CatalogueReply)
    text = catalogue_table(reply.metrics, arguments.filter, terminal_columns())
    if arguments.json:
        kept = tuple(metric for metric in reply.metrics if matches(metric.name, arguments.filter))
        print_json(CatalogueReply(metrics=kept))
    elif text:
        print(text)
    if not text:
        arguments.printed = True
        raise CommandError(f"no metric like {arguments.filter!r}: without --filter all are listed")
    return DONE
