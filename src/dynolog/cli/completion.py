"""dyno completion."""

import argparse

from dynolog.cli.exit_codes import DONE, CommandError
from dynolog.rpc.client import Target

_FILES = frozenset({"FILE", "FILE|DIR", "OTHER", "OUT", "PATH"})
_DIRECTORIES = frozenset({"DIR"})


class Completion:
    """Print a script that completes dyno's arguments in bash, zsh, fish or tcsh.

    For instance: `dyno completion bash > ~/.local/share/bash-completion/completions/dyno`.
    """

    name = "completion"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which shell."""
        parser.epilog = (
            'In this terminal: eval "$(dyno completion bash)". In all to come: dyno completion bash > '
            "~/.local/share/bash-completion/completions/dyno"
        )
        parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), metavar="bash|zsh|fish|tcsh")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:  # noqa: ARG002 - asks no daemon
        """Print the script."""
        try:
            import shtab  # noqa: PLC0415 - optional
        except ImportError:
            raise CommandError("completion needs shtab: pip install 'dynolog[completion]'") from None
        from dynolog.cli.parser import parser_for_completion  # noqa: PLC0415 - the whole tree only here

        tree = parser_for_completion()
        _name_files(tree, shtab.FILE, shtab.DIRECTORY)
        print(shtab.complete(tree, shell=arguments.shell))
        return DONE


def _name_files(parser: argparse.ArgumentParser, file: object, directory: object) -> None:
    """Say which arguments are names of files, by what stands for them in the help."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list options
        if action.metavar in _FILES | _DIRECTORIES:
            action.complete = directory if action.metavar in _DIRECTORIES else file  # type: ignore[attr-defined] # shtab reads it
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor to find a subparser
            for below in action.choices.values():
                _name_files(below, file, directory)
