"""Where the commands begin: which one is meant, and Ctrl-C before they have been imported."""

import builtins
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from dynolog import commands

MODULES = {
    "dynolog": "dynolog.daemon.main",
    "dyno": "dynolog.cli.main",
    "dyno-run": "dynolog.cli.dyno_run.command",
    "unitrace": "dynolog.cli.unitrace",
}


def interrupted_importing(name: str) -> Callable[..., Any]:
    real = builtins.__import__

    def load(asked: str, *rest: Any, **more: Any) -> Any:
        if asked == name:
            raise KeyboardInterrupt
        return real(asked, *rest, **more)

    return load


@pytest.mark.parametrize("name", MODULES)
def test_ctrl_c_during_the_imports_is_130_and_nothing_is_said(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(builtins, "__import__", interrupted_importing(MODULES[name]))
    assert commands.COMMANDS[name]() == 130
    assert capsys.readouterr() == ("", "")


def test_every_installed_command_begins_there_and_that_imports_nothing_else() -> None:
    installed = {entry.name: entry.value for entry in distribution("dynolog").entry_points}
    assert installed == {name: f"dynolog.commands:{name.replace('-', '_')}" for name in MODULES}
    code = "import sys; before = set(sys.modules); import dynolog.commands; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dynolog", "dynolog.commands"]


@pytest.mark.parametrize(
    ("words", "meant", "left"),
    [
        (["/usr/bin/dyno", "ps"], "dyno", ["ps"]),
        (["dynolog.pyz", "dyno", "ps"], "dyno", ["ps"]),
        (["dynolog.pyz", "--check"], "dynolog", ["--check"]),
        (["dynolog.pyz"], "dynolog", []),
        (["x/__main__.py", "unitrace", "dyno"], "unitrace", ["dyno"]),
        (["dyno.pyz", "dynolog"], "dyno", ["dynolog"]),
    ],
)
def test_the_name_says_which_is_meant_or_the_first_word(
    words: list[str], meant: str, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def standing_for(name: str) -> Callable[[], int]:
        def run() -> int:
            ran.append(name)
            return 7

        return run

    for name in MODULES:
        monkeypatch.setitem(commands.COMMANDS, name, standing_for(name))
    monkeypatch.setattr(sys, "argv", words)
    assert commands.main() == 7
    assert ran == [meant]
    assert sys.argv[1:] == left


@pytest.mark.parametrize(
    ("closed", "command", "code"),
    [
        (">&-", "dynolog --version", 0),
        (">&-", "dyno --unix /none status", 3),
        ("2>&-", "dyno --unix /none status", 3),
        ("<&- >&- 2>&-", "dyno --unix /none --json status", 3),
        (">/dev/full", "dynolog --help", 1),
        ("2>&1 >/dev/full", "dynolog --check", 1),
    ],
)
def test_a_stream_that_is_closed_or_full_is_no_traceback(closed: str, command: str, code: int) -> None:
    directory = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", "-c", f"{directory}/{command} {closed}"], capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr
