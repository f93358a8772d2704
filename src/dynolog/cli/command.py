"""What a subcommand of dyno is."""

import argparse
from typing import Protocol

from dynolog.rpc.client import Target


class Command(Protocol):
    """A subcommand: one module in this room, one line in registry.py. The class docstring is its help line."""

    name: str

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Declare its options."""
        ...

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Do it; returns the exit code: 0 done, 1 nothing matched or a capture failed, 2 usage, 3 cannot reach the daemon."""
        ...
