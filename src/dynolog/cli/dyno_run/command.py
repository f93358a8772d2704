"""The `dyno-run` command: runs a training command on a node where a daemon answers, one that it starts if there is none.

The command takes dyno-run's own place (execve(2)), so that signals, exit code, terminal and pid are the command's own.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from dynolog import __version__
from dynolog.cli.dyno_run.node_daemon import NodeDaemon
from dynolog.cli.dyno_run.node_join import join_node
from dynolog.cli.printable import printable
from dynolog.model.errors import DynologError

FLAGS_VARIABLE = "DYNO_RUN_FLAGS"
DIRECTORY_VARIABLE = "DYNO_RUN_DIR"
_USAGE, _CANNOT_EXECUTE, _NOT_FOUND = 2, 126, 127  # as env(1), nohup(1) and shells have them
_SOCKET_DIR_VARIABLE = "KINETO_IPC_SOCKET_DIR"


def main(argv: Sequence[str] | None = None) -> int:
    """Make sure of a daemon, then become the command. Returns only an exit code for a command that cannot be run."""
    arguments = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    command: list[str] = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        print("dyno-run: no command was given: dyno-run python train.py", file=sys.stderr)
        return _USAGE
    try:
        flags = shlex.split(os.environ.get(FLAGS_VARIABLE, "")) + arguments.daemon_flag
    except ValueError as error:
        print(f"dyno-run: {FLAGS_VARIABLE} cannot be split into words: {error}", file=sys.stderr)
        return _USAGE
    try:
        said = join_node(_node(tuple(flags)))
    except (DynologError, OSError) as error:
        # A job is worth more than its observation.
        said = f"no daemon, so this command cannot be traced: {error}"
    if said:
        print(f"dyno-run: {printable(said)}", file=sys.stderr, flush=True)
    return _become(command)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dyno-run",
        description="Run a command so that its PyTorch processes can be traced: with KINETO_USE_DAEMON=1, and with a dynolog "
        "daemon on this node. Where none answers one is started, once for all tasks of a user on the node, and stopped when the "
        "last of them ends.",
        epilog=f"{FLAGS_VARIABLE} holds flags for the daemon too; {DIRECTORY_VARIABLE} (/tmp) is where it keeps its log while it runs.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dyno-run {__version__}", help="print the version")
    parser.add_argument(
        "--daemon-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="a flag for a daemon that is started, such as --daemon-flag=--port=1779",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD ...", help="the command and its arguments")
    return parser


def _node(flags: tuple[str, ...]) -> NodeDaemon:
    """Where this user's tasks on this node meet: steps and jobs share a daemon, and nodes may share a file system."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    name = "".join(char if char.isalnum() or char in ".-" else "_" for char in f"{os.getuid()}-{node}")
    base = os.environ.get(DIRECTORY_VARIABLE) or "/tmp"  # noqa: S108 - its owner and mode are checked
    return NodeDaemon(
        directory=f"{base}/dynolog-run-{name}", socket_directory=os.environ.get(_SOCKET_DIR_VARIABLE, ""), flags=flags
    )


def _become(command: list[str]) -> int:
    """Returns only when it cannot be run: the exit code."""
    environment = {**os.environ, "KINETO_USE_DAEMON": "1"}
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - running the user's command is what this is for
    except FileNotFoundError as error:
        # Either the command or the interpreter that its first line names.
        print(f"dyno-run: {command[0]}: {(error.strerror or 'not found').lower()}", file=sys.stderr)
        return _NOT_FOUND
    except (OSError, ValueError) as error:
        print(f"dyno-run: {command[0]} cannot be run: {error}", file=sys.stderr)
        return _CANNOT_EXECUTE


if __name__ == "__main__":
    sys.exit(main())
