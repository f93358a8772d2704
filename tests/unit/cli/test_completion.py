"""What a bash offers after the script of `dyno completion bash`."""

import subprocess
from pathlib import Path

import pytest

from dynolog.cli.main import main

ASK = """
source ./dyno.bash
while read -r line; do
    COMP_LINE=$line
    COMP_POINT=${#line}
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
    COMPREPLY=()
    _shtab_dyno
    echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with the script, a file and a folder in it."""
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "dyno.bash").write_text(capsys.readouterr().out)
    (tmp_path / "rank0.json").touch()
    (tmp_path / "ranks").mkdir()
    return tmp_path


def test_words_options_and_files_are_offered(folder: Path) -> None:
    offered = {
        "dyno tr": "trace",
        "dyno trace sl": "slice",
        "dyno trace slice --st": "--steps",
        "dyno gputrace --hostn": "--hostname",
        "dyno trace merge --align c": "collectives",
        "dyno trace slice rank0": "rank0.json",
        "dyno analyze ran": "rank0.json ranks",
        "dyno gputrace --fetch ran": "ranks",
        "dyno --token-file rank0": "rank0.json",
    }
    lines = "".join(f"{line}\n" for line in offered)
    done = subprocess.run(["bash", "-c", ASK], cwd=folder, input=lines, capture_output=True, text=True, check=True)
    assert [" ".join(sorted(line.split())) for line in done.stdout.splitlines()] == list(offered.values())
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells_have_a_script_too(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    assert "slice" in capsys.readouterr().out
