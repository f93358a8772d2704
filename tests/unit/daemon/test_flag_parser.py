"""Flags as gflags reads them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.daemon.flag_parser import DEFAULT_FLAG_FILE, FlagParser
from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag, FlagValue, Settings

FLAGS = (
    Flag(name="port", default=1778, minimum=0, maximum=65535, help=""),
    Flag(name="use_JSON", default=False, help=""),
    Flag(name="logtostderr", default=True, help=""),
    Flag(
        name="kernel_monitor_reporting_interval_s",
        aliases=("reporting_interval_s",),
        default=60.0,
        minimum=0.01,
        help="",
    ),
    Flag(name="log_file", default="", help=""),
    Flag(name="style", default="a", choices=("a", "b"), help=""),
)


def parse(*arguments: str) -> dict[str, FlagValue]:
    parsed = FlagParser(FLAGS).parse(arguments)
    assert parsed.warnings == ()
    return parsed.given


@pytest.mark.parametrize("spelling", [["--port=1"], ["--port", "1"], ["-port=1"], ["-port", "1"]])
def test_one_dash_or_two_equals_or_space(spelling: list[str]) -> None:
    assert parse(*spelling) == {"port": 1}


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("--use_JSON", True),
        ("--use-JSON", True),
        ("--nouse_JSON", False),
        ("--nouse-JSON", False),
        ("--use_JSON=false", False),
        ("-use_JSON=1", True),
    ],
)
def test_switches(spelling: str, value: bool) -> None:
    assert parse(spelling) == {"use_JSON": value}


def test_a_switch_takes_no_following_value() -> None:
    with pytest.raises(FlagError, match="'false' is not a flag"):
        parse("--use_JSON", "false")


def test_the_last_value_wins_and_aliases_are_the_same_flag() -> None:
    assert parse("--reporting_interval_s=1", "--kernel-monitor-reporting-interval-s=0.5") == {
        "kernel_monitor_reporting_interval_s": 0.5
    }


def test_text_values_keep_equals_signs_and_dashes() -> None:
    assert parse("--log_file=a=b", "--log_file", "--x") == {"log_file": "--x"}
    assert parse("--log_file=a=b") == {"log_file": "a=b"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prot=1"], "unknown flag --prot; did you mean --port?"),
        (["--enable_everything"], "unknown flag --enable_everything; see dynolog --help"),
        (["--port=abc"], "--port=abc: must be a whole number"),
        (["--port=1.5"], "--port=1.5: must be a whole number"),
        (["--port=70000"], "--port=70000: must be at most 65535"),
        (["--port"], "--port needs a value: type --port=VALUE"),
        (["--reporting_interval_s=nan"], "must be a finite number"),
        (["--reporting_interval_s=0"], "must be at least 0.01"),
        (["--use_JSON=maybe"], "--use_JSON=maybe: must be true or false"),
        (["--nouse_JSON=1"], "--nouse_JSON takes no value"),
        (["--style=c"], "must be one of a, b"),
        (["start"], "'start' is not a flag"),
        (["--"], "'--' is not a flag"),
        (["--flagfile=/nowhere/at/all"], "flag file /nowhere/at/all is not there"),
    ],
)
def test_what_cannot_be_used_says_what_to_type(arguments: list[str], sentence: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse(*arguments)
    assert sentence in str(caught.value)


def test_a_flag_file_is_one_flag_a_line(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("# comment\n\n--port=2\n  --use_JSON\n-log_file /var/log/a b.log\n--nologtostderr\n")
    assert parse(f"--flagfile={file}") == {
        "port": 2,
        "use_JSON": True,
        "log_file": "/var/log/a b.log",
        "logtostderr": False,
    }
    assert parse("--flagfile", str(file), "--port=3")["port"] == 3
    assert parse("--port=3", f"-flagfile={file}")["port"] == 2


def test_an_empty_flag_file_and_a_missing_default_one_are_fine(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert parse(f"--flagfile={empty}") == {}
    if not Path(DEFAULT_FLAG_FILE).exists():
        assert parse(f"--flagfile={DEFAULT_FLAG_FILE}") == {}


def test_an_unknown_flag_in_a_file_warns_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("--port=2\n--prot=3\n")
    parsed = FlagParser(FLAGS).parse([f"--flagfile={file}"])
    assert parsed.given == {"port": 2}
    assert parsed.warnings == (f"{file} line 2: unknown flag --prot; did you mean --port?",)


def test_only_the_first_unknown_flags_are_compared_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("--prot=3\n" * 1000)
    warnings = FlagParser(FLAGS).parse([f"--flagfile={file}"]).warnings
    assert sum("did you mean --port?" in warning for warning in warnings) == 50
    assert warnings[-1] == f"{file} line 1000: unknown flag --prot; see dynolog --help"


def test_undefok_names_may_be_unknown() -> None:
    assert parse("--undefok=new_flag,other", "--new_flag=1", "--noother") == {}


def test_flag_files_that_name_each_other_end(tmp_path: Path) -> None:
    file = tmp_path / "loop"
    file.write_text(f"--flagfile={file}\n")
    with pytest.raises(FlagError, match="flag files name each other more than 16 deep"):
        parse(f"--flagfile={file}")


def test_a_value_missing_at_the_end_of_a_line_is_not_taken_from_the_next(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("--log_file\n--port=1\n")
    with pytest.raises(FlagError, match="line 1: --log_file needs a value"):
        parse(f"--flagfile={file}")


def test_a_binary_flag_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_bytes(b"\xff\xfe--port=1")
    with pytest.raises(FlagError, match="not UTF-8"):
        parse(f"--flagfile={file}")


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_arguments_parse_or_are_refused_in_one_line(arguments: list[str]) -> None:
    try:
        parsed = FlagParser(FLAGS).parse([argument for argument in arguments if "flagfile" not in argument])
    except FlagError:
        return
    settings = Settings(FLAGS, parsed.given)
    assert isinstance(settings.integer("port"), int)


@given(st.integers(0, 65535), st.floats(0.01, 1e6), st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_values_come_back_as_typed(port: int, interval: float, text: str) -> None:
    given_values = parse(f"--port={port}", f"--reporting_interval_s={interval!r}", f"--log_file={text}")
    assert given_values == {"port": port, "kernel_monitor_reporting_interval_s": interval, "log_file": text}
