"""dyno reload."""

import argparse

from dynolog.cli.daemon_kind import knows_ours
from dynolog.cli.exit_codes import DONE, FAILED, UNREACHABLE, CommandError
from dynolog.cli.printable import printable
from dynolog.cli.reply_text import print_json
from dynolog.model.reload import ReloadReport
from dynolog.rpc import messages
from dynolog.rpc.client import NoAnswer, Target, call


class Reload:
    """Make the daemon read its flag files, rules and certificates again, and reopen its log, as SIGHUP does.

    Exit code 1 when something could not be read: there everything stays as it was.
    """

    name = "reload"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print what changed, what must wait, and what could not be read."""
        try:
            reply = call(target, messages.Reload(), messages.ReloadReply)
        except NoAnswer:
            if knows_ours(target):
                raise
            raise CommandError(
                "this daemon is the original C++ dynolog, which reads its flags at its start only: restart it",
                UNREACHABLE,
            ) from None
        if arguments.json:
            print_json(reply)
            arguments.printed = True
        else:
            print("\n".join(map(printable, report_lines(reply))))
        return FAILED if reply.errors else DONE


def report_lines(report: ReloadReport) -> list[str]:
    """For a person, one fact a line."""
    lines = [f"error: {sentence}" for sentence in report.errors]
    lines += [f"now in effect: {one}" for one in report.changed]
    lines += [f"at the next start: {one}" for one in report.waiting]
    lines += [f"warning: {sentence}" for sentence in report.warnings]
    return lines or ["nothing has changed"]
