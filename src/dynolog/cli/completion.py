"""dyno completion."""

import argparse

from dynolog.cli.exit_codes import DONE, CommandError
from dynolog.rpc.client import Target


class Completion:
    """Print a script that completes dyno's arguments in bash, zsh, fish or tcsh.

    For instance: `dyno completion bash > ~/.local/share/bash-completion/completions/dyno`.
    """

    name = "completion"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which shell."""
        parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"))

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Print the script."""
        try:
            import shtab  # noqa: PLC0415 - optional
        except ImportError:
            raise CommandError("completion needs shtab: pip install 'dynolog[completion]'") from None
        from dynolog.cli.parser import parser_for_completion  # noqa: PLC0415 - the whole tree only here

        print(shtab.complete(parser_for_completion(), shell=arguments.shell))
        return DONE
