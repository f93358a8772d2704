"""dyno version."""

import argparse

from dynolog.cli.exit_codes import DONE
from dynolog.cli.reply_text import ask, show_answer
from dynolog.rpc.client import Target
from dynolog.rpc.messages import GetVersion, VersionReply


class Version:
    """Print the daemon's version."""

    name = "version"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Print the answer as the public dyno does."""
        show_answer(target, ask(target, GetVersion()), arguments, VersionReply)
        return DONE
