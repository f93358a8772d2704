"""Whatever a daemon answers, dyno shows it on its own terms: no byte of it steers the terminal, none ends dyno with a traceback."""

import json
from pathlib import Path

import msgspec
import pytest

from dynolog.cli.main import main
from dynolog.rpc.requests import FUNCTIONS
from fakes.hostile_daemon import REPLIES, STEERS, Inventor, hostile_daemon

COMMANDS = (
    "status",
    "status --verbose",
    "version",
    "ps",
    "gpus",
    "metrics",
    "metrics --list",
    "exporters",
    "reload",
    "dcgm-pause",
    "dcgm-resume",
    "trace",
    "trace r1",
    "trace-host r1",
    "gputrace --log-file /tmp/x.json --duration-ms 100",
    "gputrace --log-file /tmp/x.json --duration-ms 100 --dry-run",
)


def test_it_knows_every_function() -> None:
    assert set(REPLIES) == set(FUNCTIONS)


@pytest.mark.parametrize("function", REPLIES)
def test_its_answers_are_those_that_a_daemon_could_give(function: str) -> None:
    """Else dyno would show none of their texts."""
    understood = 0
    for seed in range(1, 20):
        try:
            msgspec.convert(Inventor(seed).reply(function), REPLIES[function], strict=False)
        except msgspec.ValidationError:
            continue
        understood += 1
    assert understood


@pytest.mark.parametrize(
    ("command", "many"),
    # Traces on many hosts are followed to an end that never comes here.
    [(one, many) for one in COMMANDS for many in (False, True) if not (many and "trace" in one)],
)
def test_no_answer_steers_the_terminal(
    command: str, many: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(1, 6):
        with hostile_daemon(seed) as port:
            where = ["--hosts", f"127.0.0.1:{port}"] if many else ["--hostname", "127.0.0.1", "--port", str(port)]
            for as_json in ([], ["--json"]):
                main([*where, "--timeout", "20", *as_json, *command.split()])
                shown = capsys.readouterr()
                assert not [steers for steers in STEERS if steers in shown.out + shown.err], shown
                if as_json and shown.out:
                    json.loads(shown.out)
