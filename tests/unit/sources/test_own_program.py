"""A part of the product in a process of its own finds this installation, whatever is around it."""

import subprocess
from pathlib import Path

import pytest

import dynolog
from dynolog.sources.own_program import module_command, module_environment


def test_the_child_is_of_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the same name in the present directory and in the caller's PYTHONPATH is not ours."""
    (tmp_path / "dynolog").mkdir()
    (tmp_path / "dynolog" / "__init__.py").write_text("raise SystemExit('not ours')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = subprocess.run(
        [*module_command("dynolog.daemon.main"), "--version"],
        env=module_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout == f"dynolog {dynolog.__version__}\n"
