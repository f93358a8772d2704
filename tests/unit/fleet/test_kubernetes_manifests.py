"""The manifests in docs/recipes/kubernetes are what the public API takes, and what the daemon takes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynolog.daemon.flags import declared_flags

MANIFESTS = Path(__file__).resolve().parents[3] / "docs" / "recipes" / "kubernetes"
FILES = ("daemonset.yaml", "dyno.yaml", "trainer.yaml")


def validate(path: Path, version: str) -> subprocess.CompletedProcess[str]:
    """By the schemas of the API of that version, unknown fields refused."""
    command = [sys.executable, "-m", "kubernetes_validate", "--strict", "--kubernetes-version", version, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["1.27", "1.31", "1.35"])
@pytest.mark.parametrize("name", FILES)
def test_the_public_api_takes_them(name: str, version: str) -> None:
    done = validate(MANIFESTS / name, version)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_field_that_the_api_does_not_know_is_refused(tmp_path: Path) -> None:
    """Else the test above would say nothing."""
    text = (MANIFESTS / "daemonset.yaml").read_text()
    (tmp_path / "wrong.yaml").write_text(text.replace("hostPID:", "hostPid:"))
    assert validate(tmp_path / "wrong.yaml", "1.31").returncode != 0


def test_no_file_is_left_out() -> None:
    assert {path.name for path in MANIFESTS.glob("*.yaml")} == {*FILES, "kustomization.yaml"}


def test_the_daemon_knows_its_flags() -> None:
    flags = re.findall(r"^ +- \"?--(\w+)", (MANIFESTS / "daemonset.yaml").read_text(), re.MULTILINE)
    assert len(flags) == 5
    assert set(flags) <= {flag.name for flag in declared_flags()}
