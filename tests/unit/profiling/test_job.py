"""Which jobs a text means (H01)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import RequestError
from dynolog.profiling.job import JobIdentity, job_of, parse_job

ELEMENT = job_of(
    90213, {"SLURM_JOB_ID": "90213", "SLURM_ARRAY_JOB_ID": "90210", "SLURM_ARRAY_TASK_ID": "2", "SLURM_STEP_ID": "0"}
)
STEP = job_of(90210, {"SLURM_JOB_ID": "90210", "SLURM_STEP_ID": "0"})
BATCH = job_of(90210, {"SLURM_JOB_ID": "90210"})
UNREAD = JobIdentity(wire_id=90210)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90210", [ELEMENT, STEP, BATCH, UNREAD]),
        ("90213", [ELEMENT]),
        ("90210_2", [ELEMENT]),
        ("90210_3", []),
        ("90210_[1-3]", [ELEMENT]),
        ("90210_[0,4-9]", []),
        ("90210_[0,2%1]", [ELEMENT]),
        ("90210.0", [ELEMENT, STEP]),
        ("90210.00", [ELEMENT, STEP]),
        ("90210_2.0", [ELEMENT]),
        ("90210.1", []),
        ("90210.batch", [BATCH]),
        (" 90210_2 ", [ELEMENT]),
        ("9021", []),
    ],
)
def test_a_text_means_the_job_its_elements_or_its_step(text: str, meant: list[JobIdentity]) -> None:
    selector = parse_job(text, wire_id=1)
    assert [job for job in (ELEMENT, STEP, BATCH, UNREAD) if selector.matches(job)] == meant


@pytest.mark.parametrize("wire_id", [0, 1, 90210, 2**31, 2**63 - 1, -1])
def test_a_number_must_equal_the_wire_s_in_all_64_bits(wire_id: int) -> None:
    selector = parse_job("", wire_id)
    assert selector.matches(JobIdentity(wire_id=wire_id))
    assert not selector.matches(JobIdentity(wire_id=wire_id ^ (1 << 40)))
    assert not selector.matches(JobIdentity(wire_id=wire_id ^ 1))


def test_a_job_is_shown_as_squeue_shows_it() -> None:
    assert [job.text for job in (ELEMENT, STEP, JobIdentity(wire_id=5), JobIdentity(wire_id=0))] == [
        "90210_2",
        "90210",
        "5",
        "",
    ]


@pytest.mark.parametrize(
    "text", ["x", "90210_", "90210_[", "90210_[1-]", "90210_[a]", "-1", "90210.", "90210.x", "9" * 21, "1_2_3"]
)
def test_anything_else_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_job(text)
    assert caught.value.code == "bad_request"


@given(st.text(max_size=40))
def test_no_text_does_anything_but_select_or_be_refused(text: str) -> None:
    try:
        selector = parse_job(text)
    except RequestError:
        return
    selector.matches(ELEMENT)
