"""--env_attribution_mappings_file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.attribution.environment_map import DEFAULT_MAP, parse_environment_map, read_environment_map
from dynolog.model.errors import FlagError


def test_without_a_file_slurms_variables_are_mapped() -> None:
    assert read_environment_map("") is DEFAULT_MAP
    assert DEFAULT_MAP["SLURM_JOB_ID"] == "job_id"


def test_a_file_replaces_the_map(tmp_path: Path) -> None:
    file = tmp_path / "map.csv"
    file.write_text('\ufeff# variable, label\r\nPBS_JOBID, job_id\n\n"TEAM",team\n')
    assert read_environment_map(str(file)) == {"PBS_JOBID": "job_id", "TEAM": "team"}


def test_every_bad_line_is_named_by_its_number(tmp_path: Path) -> None:
    text = "A,a\n\nB\nC,c,d\n1X,x\nD,d-e\nE,gpu_uuid\nA,b\nF,a\n,x\n"
    with pytest.raises(FlagError) as error:
        parse_environment_map(text, "map.csv")
    said = str(error.value)
    assert "--env_attribution_mappings_file=map.csv: " in said
    for expected in (
        "line 3: 1 fields",
        "line 4: 3 fields",
        "line 5: '1X' is no name of an environment variable",
        "line 6: 'd-e' is no label",
        "line 7: the label gpu_uuid is taken",
        "line 8: A stands there twice",
        "line 9: a stands there twice",
        "line 10: '' is no name",
    ):
        assert expected in said
    assert "line 1:" not in said


def test_a_field_too_long_for_the_reader_is_a_bad_line_too() -> None:
    with pytest.raises(FlagError, match="line 2: field larger than field limit"):
        parse_environment_map("A,b\nB," + "x" * 200_000, "f")


def test_of_very_many_bad_lines_the_first_are_named() -> None:
    with pytest.raises(FlagError, match=r"line 11: .*and 89 more$"):
        parse_environment_map("A,b\n" + "A,b\n" * 99, "f")


@pytest.mark.parametrize("label", ["reason", "xid", "host_name", "device", "__name__"])
def test_labels_of_parts_and_hosts_are_not_for_environments(label: str) -> None:
    """`reason` would make one series of all reasons of throttling."""
    with pytest.raises(FlagError, match=f"the label {label} is taken"):
        parse_environment_map(f"X,{label}", "f")


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfe"])
def test_a_file_that_maps_nothing_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "map.csv"
    file.write_bytes(content)
    with pytest.raises(FlagError):
        read_environment_map(str(file))
    with pytest.raises(FlagError, match="cannot be read: No such file"):
        read_environment_map(str(tmp_path / "other.csv"))


@given(st.text())
def test_any_text_is_a_map_or_a_sentence(text: str) -> None:
    try:
        found = parse_environment_map(text, "x")
    except FlagError:
        return
    assert found


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True),
        st.from_regex(r"x[a-z0-9_]{0,20}", fullmatch=True),
        min_size=1,
        max_size=20,
    )
)
def test_what_was_written_is_read_back(mapping: dict[str, str]) -> None:
    once = {variable: f"x{number}_{label}" for number, (variable, label) in enumerate(mapping.items())}
    text = "".join(f"{variable},{label}\n" for variable, label in once.items())
    assert parse_environment_map(text, "x") == once
