"""Where each command begins. Ctrl-C while its modules are still being imported ends it as quietly as later: with 130, and no traceback."""

import os
import sys

TYPE_CHECKING = (
    False  # typing's own is true for checkers only as well, but importing it takes time in which Ctrl-C is loud
)
if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def dynolog() -> int:
    """The daemon; returns its exit code."""

    def run() -> int:
        from dynolog.daemon.main import main  # noqa: PLC0415 - each command imports its own part only

        return main()

    return _run(run)


def dyno() -> int:
    """The command line; returns its exit code."""

    def run() -> int:
        from dynolog.cli.main import main  # noqa: PLC0415 - as above

        return main()

    return _run(run)


def dyno_run() -> int:
    """Becomes the command that it is given; returns only when that cannot be run."""

    def run() -> int:
        from dynolog.cli.dyno_run.command import main  # noqa: PLC0415 - as above

        return main()

    return _run(run)


def unitrace() -> int:
    """The public Dynolog's script of that name; returns the exit code."""

    def run() -> int:
        from dynolog.cli.unitrace import main  # noqa: PLC0415 - as above

        return main()

    return _run(run)


COMMANDS: "dict[str, Callable[[], int]]" = {
    "dynolog": dynolog,
    "dyno": dyno,
    "dyno-run": dyno_run,
    "unitrace": unitrace,
}


def main() -> int:
    """The command that is meant, for `python -m dynolog` and the one file that holds everything (dynolog.pyz).

    A link called `dyno`, `dyno-run` or `unitrace` says it by its name, else the first argument may; without either it is the daemon.
    """
    name = sys.argv[0].rpartition("/")[2].partition(".")[0]
    if (name not in COMMANDS or name == "dynolog") and len(sys.argv) > 1 and sys.argv[1] in COMMANDS:
        name = sys.argv.pop(1)
    return COMMANDS[name if name in COMMANDS else "dynolog"]()


def _run(run: "Callable[[], int]") -> int:
    try:
        _open_what_is_closed()
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _open_what_is_closed() -> None:
    """A caller may have closed stdin, stdout or stderr (`>&-`): what is opened next must not take their place, nor a print fail."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
        sys.stdin = sys.stdin or open(0)  # noqa: SIM115 - for as long as the process lives
        sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115 - as above
        sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115 - as above
