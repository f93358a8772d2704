"""Files of hosts, of MPI and plain."""

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.hostfile import HostFile, parse_hostfile
from dynolog.fleet.targets import HostQuery, HostsError


def names(text: str) -> list[str]:
    return [str(target) for target in parse_hostfile(text, "hosts", 1778)]


def test_a_file_of_open_mpi() -> None:
    assert names("# the job\ngpu1 slots=4 max_slots=8\n\nuser@gpu2 slots=4 # spare\ngpu[3-4]\n") == [
        "gpu1",
        "gpu2",
        "gpu3",
        "gpu4",
    ]


def test_a_number_is_a_count_of_processes_as_in_mpich_or_a_port() -> None:
    assert names("gpu1:8\ngpu2:1779\ngpu[3-4]:16\n[::1]:1780") == ["gpu1", "gpu2:1779", "gpu3", "gpu4", "[::1]:1780"]


def test_repeated_hosts_as_lsf_writes_them_and_windows_line_ends_and_a_mark() -> None:
    assert names("\ufeffgpu1\r\ngpu1\r\ngpu2\r\n".removeprefix("\ufeff")) == ["gpu1", "gpu2"]


def test_a_bad_line_is_named() -> None:
    with pytest.raises(HostsError, match=r"hosts, line 3: .*n\[01"):
        names("gpu1\n\nn[01\n")
    with pytest.raises(HostsError, match="names no host"):
        names("# nothing\n")


def test_the_file_is_read_with_its_mark_and_a_missing_one_is_said(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"\xef\xbb\xbfgpu1\ngpu2:1779\n")
    found = HostFile().find(HostQuery(value=str(path), port=5))
    assert [(target.host, target.port) for target in found.targets] == [("gpu1", 5), ("gpu2", 1779)]
    with pytest.raises(HostsError, match="No such file"):
        HostFile().find(HostQuery(value=str(tmp_path / "none")))


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"gpu9\n")))
    assert HostFile().find(HostQuery(value="-")).targets[0].host == "gpu9"


@given(st.text(max_size=60))
def test_any_text_gives_hosts_or_a_sentence(text: str) -> None:
    try:
        targets = parse_hostfile(text, "hosts", 1778)
    except HostsError:
        return
    assert len({(target.host, target.port) for target in targets}) == len(targets) > 0
