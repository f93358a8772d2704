"""The public Dynolog's unitrace script, as our `dyno gputrace` is asked to do it."""

import pytest

from dynolog.cli.unitrace import FILE_NAMES, dyno_arguments

NOW_NS = 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("90210", "--slurm-job 90210 --log-file /tmp/ NAMES --duration-ms 500"),
        ("90210_2 -o /data/t -d 700", "--slurm-job 90210_2 --log-file /data/t/ NAMES --duration-ms 700"),
        (
            "90210 --hosts gpu1 gpu[02-04] --output-dir /d --start-time-delay 20",
            "--hosts gpu1,gpu[02-04] --job-id 90210 --log-file /d/ NAMES --duration-ms 500 --profile-start-time 1700000020123",
        ),
        (
            "90210 -i 5 --iteration-roundup 100 -d 700",
            "--slurm-job 90210 --log-file /tmp/ NAMES --iterations 5 --profile-start-iteration-roundup 100",
        ),
        (
            "90210 -i 5",
            "--slurm-job 90210 --log-file /tmp/ NAMES --iterations 5 --profile-start-iteration-roundup 1000",
        ),
        (
            "90210 --fetch /here --port 1779",
            "--slurm-job 90210 --log-file /tmp/ NAMES --duration-ms 500 --fetch /here --port 1779",
        ),
    ],
)
def test_arguments_of_the_script(typed: str, asked: str) -> None:
    """Defaults are the script's, but that a start time is chosen by what the processes need; what it did not know goes to dyno."""
    expected = asked.replace("NAMES", f"--name-template {FILE_NAMES}").split()
    assert dyno_arguments(typed.split(), NOW_NS) == ["gputrace", *expected]


def test_a_relative_directory_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """As the script does: the trainers have another working directory."""
    monkeypatch.chdir(str(tmp_path))
    assert f"{tmp_path}/traces/" in dyno_arguments(["1", "-o", "traces"], NOW_NS)


@pytest.mark.parametrize("typed", ["", "1 -d 0", "1 -d x", "1 --start-time-delay -1", "1 --iteration-roundup 0"])
def test_what_the_script_cannot_mean(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and a sentence."""
    with pytest.raises(SystemExit) as ended:
        dyno_arguments(typed.split(), NOW_NS)
    assert ended.value.code == 2
    assert "unitrace: error:" in capsys.readouterr().err
