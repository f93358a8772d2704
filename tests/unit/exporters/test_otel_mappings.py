"""The CSV file that names values of log records."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.otlp.mappings import Collected, Naming, Renamed, parse_mappings, read_mappings


def test_the_three_forms_of_a_line() -> None:
    lines = [
        "# DCGM to ours",
        "",
        "gpu_power_draw,power_w,1.0",
        "sm_active_ratio,sm_pct,100",
        "gpu_name,model",
        "dcgm_error,error[dcgm_error]",
    ]
    assert parse_mappings(lines) == (
        {
            "gpu_power_draw": Renamed("power_w", 1.0),
            "sm_active_ratio": Renamed("sm_pct", 100.0),
            "gpu_name": Renamed("model"),
            "dcgm_error": Collected("error", "dcgm_error"),
        },
        [],
    )


@pytest.mark.parametrize(
    "line", ["x", "x,", ",y", "x,y,fast", "x,y,inf", "x,y,1,2", "x,c[]", "x,[s]", "x,c[s", "x,cs]", "x,c]s["]
)
def test_a_line_that_makes_no_sense_costs_only_itself(line: str) -> None:
    mappings, bad = parse_mappings([line, "a,b"])
    assert mappings == {"a": Renamed("b")}
    assert len(bad) == 1
    assert bad[0].startswith("line 1 ")


def test_spaces_and_line_ends_of_other_systems_are_no_part_of_names() -> None:
    assert parse_mappings(["a , b , 2\r\n"])[0] == {"a": Renamed("b", 2.0)}


@pytest.mark.parametrize(
    ("scale", "value", "expected"),
    [(100.0, 3, 300), (100.0, 0.5, 50.0), (0.01, 3, 0.03), (1.0, 3, 3), (2.0, "text", "text")],
)
def test_whole_numbers_stay_whole_under_a_whole_scale_and_texts_are_not_scaled(
    scale: float, value: str | float, expected: str | float
) -> None:
    found = Renamed("x", scale).value(value)
    assert found == expected
    assert type(found) is type(expected)


def test_a_file_that_is_not_there_is_said_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert read_mappings("/nonexistent/mappings.csv") == {}
    assert "/nonexistent/mappings.csv" in caplog.text


def test_bad_lines_of_a_file_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "mappings.csv"
    file.write_text("a,b\nnonsense\n")
    assert read_mappings(str(file)) == {"a": Renamed("b")}
    assert "line 2 is left out" in caplog.text


@given(st.lists(st.text(max_size=30), max_size=10))
def test_no_file_breaks_the_parser(lines: list[str]) -> None:
    mappings: dict[str, Naming]
    mappings, bad = parse_mappings(lines)
    assert len(mappings) + len(bad) <= len(lines)
