"""Names of traces on a file system that many hosts share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.naming import name_template
from dynolog.fleet.survey import log_files
from dynolog.fleet.targets import HostsError
from dynolog.profiling.kineto_config import KinetoConfig
from fakes.services import trainer


def final(log_file: str, pid: int) -> str:
    """Where libkineto writes it."""
    return KinetoConfig.parse(f"ACTIVITIES_LOG_FILE={log_file}\nACTIVITIES_DURATION_MSECS=5").final_path(pid)


@pytest.mark.parametrize("directory", ["/shared/traces", "/shared/traces/"])
def test_a_directory_gets_job_host_rank_and_pid(directory: str) -> None:
    names = name_template(directory)
    assert (
        final(names.log_file("gpu1", job="90210_2", rank=3, pid=44), 44) == "/shared/traces/90210_2/gpu1_rank3_44.json"
    )


def test_the_name_of_a_file_stands_in_front() -> None:
    assert final(name_template("/d/step9.json").log_file("gpu1", job="7", rank=0), 5) == "/d/7/step9_gpu1_rank0_5.json"


def test_what_is_not_known_is_left_out() -> None:
    names = name_template("/d")
    assert final(names.log_file("gpu1"), 5) == "/d/gpu1_5.json"
    assert final(names.log_file("gpu1", rank=0), 5) == "/d/gpu1_rank0_5.json"


def test_a_template_of_ones_own() -> None:
    names = name_template("/d/x.json", "{dir}/{host}/{stem}-r{rank}-p{pid}.json")
    assert final(names.log_file("h", rank=2, pid=9), 9) == "/d/h/x-r2-p9_9.json"


@pytest.mark.parametrize(
    "template",
    [
        "{dir}/{rank}.json",
        "{dir}/{host}",
        "{host}.json",
        "{dir}/{host}_{nope}.json",
        "{dir}/{host}{.json",
        "{dir}/{host}\n.json",
    ],
)
def test_a_template_that_would_lose_traces_is_refused(template: str) -> None:
    with pytest.raises(HostsError, match="--name-template"):
        name_template("/d", template)


@given(st.text(max_size=20), st.text(max_size=20), st.none() | st.integers(0, 9999))
def test_no_host_or_job_leads_out_of_the_directory_or_breaks_the_config(host: str, job: str, rank: int | None) -> None:
    path = final(name_template("/d").log_file(host, job=job, rank=rank, pid=7), 7)
    assert path.startswith("/d/")
    assert path.endswith("_7.json")
    assert ".." not in path.split("/")
    assert path.count("/") == (3 if job else 2)


@given(st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 1)), max_size=8))
def test_no_two_processes_of_a_host_write_the_same_file(facts: list[tuple[int, int | None]]) -> None:
    """Not even those that know themselves by the same pid, in containers."""
    trainers = [trainer(pid, rank=rank, host_pid=1000 + index) for index, (pid, rank) in enumerate(facts)]
    files = log_files("gpu1", trainers, name_template("/d"))
    assert len({final(file, one.pid) for file, one in zip(files, trainers, strict=True)}) == len(trainers)
