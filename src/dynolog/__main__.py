"""`python -m dynolog COMMAND ...`, and the one file that holds everything (dynolog.pyz): which command is meant?

A link called `dyno`, `dyno-run` or `unitrace` says it by its name, else the first argument may; without either it is the daemon.
"""

import os
import sys


def main() -> int:
    """Run the command that is meant; returns its exit code."""
    name = os.path.basename(sys.argv[0]).partition(".")[0]
    if name not in _BESIDE_THE_DAEMON and len(sys.argv) > 1 and sys.argv[1] in _BESIDE_THE_DAEMON:
        name = sys.argv.pop(1)
    return _BESIDE_THE_DAEMON.get(name, _dynolog)()


def _dynolog() -> int:
    from dynolog.daemon.main import main as run  # noqa: PLC0415 - each command imports its own part only

    return run()


def _dyno() -> int:
    from dynolog.cli.main import main as run  # noqa: PLC0415 - as above

    return run()


def _dyno_run() -> int:
    from dynolog.cli.dyno_run.command import main as run  # noqa: PLC0415 - as above

    return run()


def _unitrace() -> int:
    from dynolog.cli.unitrace import main as run  # noqa: PLC0415 - as above

    return run()


_BESIDE_THE_DAEMON = {"dyno": _dyno, "dyno-run": _dyno_run, "unitrace": _unitrace}

if __name__ == "__main__":
    sys.exit(main())
