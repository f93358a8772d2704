"""How the daemon starts a part of itself in a process of its own.

It must find this very installation, whatever started it: a virtual environment, a package with a site directory, one file.
"""

import os
import sys

_SITE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def module_command(module: str) -> list[str]:
    """The command that runs a module of ours; nothing of the directory it is started in is imported (-P)."""
    return [sys.executable, "-P", "-s", "-m", module]


def module_environment() -> dict[str, str]:
    """This process's environment, in which that command finds the modules of this installation first."""
    return {**os.environ, "PYTHONPATH": _SITE}
