"""Programs that are run for their output, and the hosts that --discover reads from it."""

import os
from pathlib import Path

import pytest

from dynolog.fleet.targets import HostsError, find_hosts
from dynolog.fleet.tool import run_tool
from fakes.tools import SHELL, Tools


def test_output_exit_code_and_complaint() -> None:
    """The last line of stderr is what a person is told."""
    output = run_tool([SHELL, "-c", "echo out; echo first >&2; echo last >&2; exit 3"])
    assert (output.stdout, output.exit_code, output.complaint) == (b"out\n", 3, "last")


def test_a_program_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """The deadline holds although a grandchild keeps the pipes open."""
    pid_file = tmp_path / "pid"
    with pytest.raises(HostsError, match=r"sh was not done within 0.3 s"):
        run_tool([SHELL, "-c", f"sleep 60 & echo $! > {pid_file}; wait"], deadline_s=0.3)
    pid = int(pid_file.read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(500):  # init may take a moment to reap it
            os.kill(pid, 0)
            if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
                raise ProcessLookupError
            os.sched_yield()


def test_output_is_bounded() -> None:
    """A program that never stops printing costs neither memory nor time."""
    with pytest.raises(HostsError, match=r"sh printed more than 100,000 bytes"):
        run_tool(
            [SHELL, "-c", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"], max_output_bytes=100_000
        )


def test_a_flood_of_complaints_is_cut() -> None:
    """The end of it is kept."""
    script = "i=0; while [ $i -lt 3000 ]; do echo complaint number $i of many >&2; i=$((i+1)); done"
    output = run_tool([SHELL, "-c", script])
    assert output.complaint == "complaint number 2999 of many"
    assert len(output.stderr) <= 1 << 14


def test_a_program_that_cannot_be_run() -> None:
    """One sentence."""
    with pytest.raises(HostsError, match="/nonexistent/tool cannot be run: no such file or directory"):
        run_tool(["/nonexistent/tool"])


# --- --discover --------------------------------------------------------------------------------------------------------


def discover(command: str) -> list[str]:
    return [str(target) for target in find_hosts({"--discover": command}).targets]


def test_hosts_that_a_command_prints(tmp_path: Path) -> None:
    """Lines, blanks, commas, comments, brackets and ports."""
    tool = Tools(tmp_path / "b").put("hosts", "# today\ngpu1 gpu2, gpu[07-08]:1779\n\nfe80::1  # the old one\n")
    assert discover(tool) == ["gpu1", "gpu2", "gpu07:1779", "gpu08:1779", "[fe80::1]"]


def test_words_are_split_as_a_shell_splits_them_and_no_shell_runs(tmp_path: Path) -> None:
    """Quotes count; `;` and `$` are letters."""
    tools = Tools(tmp_path / "b")
    assert discover(f"{tools.put('hosts', 'h1')} --zone 'a b' $HOME ; echo h2") == ["h1"]
    assert tools.calls("hosts") == ["--zone a b $HOME ; echo h2"]


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "sentence"),
    [
        ("", "", 0, "printed no host"),
        ("# none\n", "", 0, "printed no host"),
        ("gpu1\n", "token expired", 4, "failed with exit code 4: token expired"),
        ("Error: no such zone!\n", "", 0, "printed something that is no host"),
    ],
)
def test_a_command_without_hosts_says_why(
    tmp_path: Path, stdout: str, stderr: str, exit_code: int, sentence: str
) -> None:
    """Also when it printed hosts and then failed: half a list is no list."""
    with pytest.raises(HostsError, match=sentence):
        discover(Tools(tmp_path / "b").put("hosts", stdout, stderr, exit_code))


@pytest.mark.parametrize("command", ["'unclosed", "   "])
def test_a_command_that_is_none(command: str) -> None:
    with pytest.raises(HostsError):
        discover(command)
