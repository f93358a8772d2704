"""What may be typed, and what is said about the rest."""

import pytest

from dynolog.cli.fleet.many_hosts import FLEET_COMMANDS
from dynolog.cli.parser import build_parser, parse, parser_for_completion
from dynolog.cli.registry import COMMANDS, Asks


def test_global_options_stand_before_or_after_the_subcommand() -> None:
    for words in (
        ["--hostname", "gpu7", "--port=99", "--json", "ps"],
        ["ps", "--hostname", "gpu7", "--port=99", "--json"],
        ["--hostname", "gpu7", "ps", "--json", "--port", "99"],
    ):
        entry, arguments = parse(words)
        assert entry.name == "ps"
        assert (arguments.hostname, arguments.port, arguments.json) == ("gpu7", 99, True)
        assert (arguments.timeout, arguments.unix, arguments.token_file) == (10.0, "", "")


def test_what_stands_after_wins() -> None:
    _, arguments = parse(["--port", "1", "status", "--port", "2"])
    assert arguments.port == 2


def test_a_value_that_is_a_name_of_a_subcommand_is_a_value() -> None:
    entry, arguments = parse(["--hostname", "ps", "status"])
    assert (entry.name, arguments.hostname) == ("status", "ps")


def test_underscores_are_dashes_in_names_and_stay_in_values() -> None:
    _, arguments = parse(
        ["--token_file", "/etc/a_b", "gputrace", "--log_file=/tmp/a_b.json", "--job_id", "90210_2", "--with_stacks"]
    )
    assert arguments.token_file == "/etc/a_b"
    assert arguments.log_file == "/tmp/a_b.json"
    assert arguments.job_id == (-1, "90210_2")
    assert arguments.with_stacks


def test_options_of_the_original_have_its_defaults() -> None:
    _, arguments = parse(["gputrace", "--log-file", "/tmp/t.json"])
    assert arguments.job_id == (0, "")
    assert arguments.pids == [0]
    assert (arguments.duration_ms, arguments.iterations) == (500, -1)
    assert (arguments.profile_start_time, arguments.profile_start_iteration_roundup) == (0, 1)
    assert not arguments.fail_on_no_process


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["statsu"], "dyno: no subcommand 'statsu': did you mean status? (see dyno --help)"),
        (["gputrace", "--log-file", "/t", "--pid", "3"], "dyno gputrace: unknown option '--pid': did you mean --pids?"),
        (["gputrace", "--log-file", "/t", "--dur", "3"], "dyno gputrace: unknown option '--dur'"),
        (["ps", "--prot", "3"], "dyno ps: unknown option '--prot': did you mean --port?"),
        (["ps", "extra"], "dyno ps: unexpected argument 'extra'"),
        (["watch", "cpu_u"], "dyno watch: unexpected argument 'cpu_u': did you mean --filter 'cpu_u'?"),
        (["--port", "x", "ps"], "dyno: argument --port: 'x' is no port: a number from 1 to 65535"),
        (["completion"], "dyno completion: the following arguments are required: bash|zsh|fish|tcsh"),
        (["perf"], "dyno perf: the following arguments are required: list|stat"),
        ([], "dyno: name a subcommand, such as status, ps or gputrace"),
        (["--json"], "dyno: name a subcommand, such as status, ps or gputrace"),
        (["trace", "slise", "x.json"], "dyno: no subcommand 'trace slise': did you mean trace slice?"),
        (["trace-slise", "x.json"], "dyno: no subcommand 'trace-slise': did you mean trace slice?"),
        (
            ["trace", "slice", "x.json", "--setps", "1"],
            "dyno trace slice: unknown option '--setps': did you mean --steps?",
        ),
        (["ps", "--tsl-ca", "f"], "dyno ps: unknown option '--tsl-ca': did you mean --tls-ca?"),
        (["zzz"], "dyno: no subcommand 'zzz' (see dyno --help)"),
        (["-p", "1", "ps"], "dyno: unknown option '-p' before the subcommand: those of a subcommand stand after it"),
        (["--verbose", "status"], "dyno: unknown option '--verbose' before the subcommand"),
        (["--prot=3", "ps"], "dyno: unknown option '--prot' before the subcommand: did you mean --port?"),
        (["\x1b[2J"], r"dyno: no subcommand '\x1b[2J'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(line)
    assert said.err.count("\n") == 1


def test_version_of_dyno_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("dyno ")


def test_help_has_a_line_for_each_subcommand() -> None:
    text = build_parser(COMMANDS).format_help()
    for entry in COMMANDS:
        command = entry.load()
        assert command.name == entry.name
        assert f"    {entry.name}" in text


def test_help_lists_two_words_as_they_are_typed() -> None:
    text = build_parser(COMMANDS).format_help()
    assert "    trace slice " in text
    assert "trace-" not in text


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["help"], "usage: dyno [OPTION ...] SUBCOMMAND ..."),
        (["help", "ps"], "usage: dyno ps "),
        (["--port", "1", "help", "trace", "slice"], "usage: dyno trace slice "),
        (["trace", "slice", "--help"], "usage: dyno trace slice "),
    ],
)
def test_help_may_be_asked_for_by_word(words: list[str], usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(usage)


def test_help_of_a_subcommand_has_its_own_options_and_says_where_the_others_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = {}
    for name in ("gputrace", "watch", "analyze"):
        with pytest.raises(SystemExit):
            parse([name, "--help"])
        said[name] = " ".join(capsys.readouterr().out.split())
        assert "--tls-ca" not in said[name]
        assert "--json print one JSON object" in said[name]
    assert "--hosts, --slurm-job and more; `dyno --help` has them." in said["gputrace"]
    assert "--hosts" not in said["watch"]
    assert "--hostname" not in said["analyze"]
    assert parse(["watch", "--tls-ca", "/ca.crt"])[1].tls_ca == "/ca.crt"


def test_the_registry_knows_which_subcommands_work_on_many_hosts() -> None:
    assert {entry.name for entry in COMMANDS if entry.asks is Asks.MANY} == set(FLEET_COMMANDS)


def test_shells_complete_word_by_word_and_leave_no_option_out() -> None:
    tree = parser_for_completion()
    (words,) = (action for action in tree._actions if action.dest == "command")
    assert isinstance(words.choices, dict)
    assert set(words.choices) == {entry.name for entry in COMMANDS if " " not in entry.name}
    (below,) = (action for action in words.choices["trace"]._actions if action.metavar == "SUBCOMMAND")
    assert isinstance(below.choices, dict)
    assert set(below.choices) == {"validate", "info", "slice", "shrink", "merge", "convert", "host"}
    assert "--tls-ca" in below.choices["slice"].format_help()
