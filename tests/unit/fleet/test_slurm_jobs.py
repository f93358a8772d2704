"""Reading what SLURM's tools print about jobs."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.slurm_jobs import SlurmJob, parse_scontrol, parse_squeue, parse_tasks

DATA = Path(__file__).resolve().parents[2] / "data" / "slurm"


@pytest.mark.parametrize("release", ["22.05", "23.11"])
def test_both_shapes_of_json_say_the_same(release: str) -> None:
    """Numbers and states are plain up to 22.05, wrapped later; the jobs are the same."""
    jobs = {job.text: job for job in parse_squeue((DATA / f"squeue-{release}.json").read_bytes())}
    assert set(jobs) == {"1", "2", "3_1", "3_[2-4]", "4+0", "4+1", "6", "8+0", "8+1", "10_1", "10_[2-4]"}
    assert jobs["8+1"] == SlurmJob(job_id=9, het_id=8, het_offset=1, states=("RUNNING",), reason="None", nodes="n2")
    assert (jobs["10_1"].job_id, jobs["10_1"].array_id, jobs["10_1"].nodes) == (11, 10, "n3")
    assert (jobs["10_[2-4]"].count, jobs["10_[2-4]"].is_pending) == (3, True)
    assert (jobs["1"].is_running, jobs["1"].is_pending, jobs["1"].nodes) == (False, False, "n[1-2]")


def test_states_of_later_versions_come_together() -> None:
    """A job that is completing has hosts and no processes worth a trace; one whose nodes boot is on its way."""
    assert not SlurmJob(job_id=1, states=("RUNNING", "COMPLETING")).is_running
    assert SlurmJob(job_id=1, states=("RUNNING", "CONFIGURING")).is_running
    assert SlurmJob(job_id=1, states=("PENDING", "REQUEUED")).is_pending
    assert not SlurmJob(job_id=1, states=("COMPLETED",)).is_pending


def test_one_odd_job_hides_no_other() -> None:
    """A dump of the whole cluster may hold a record that nobody foresaw."""
    odd: list[object] = [{"job_id": "x"}, {"job_id": 7, "job_state": "RUNNING", "nodes": "n1"}]
    assert [job.job_id for job in parse_squeue(json.dumps({"jobs": odd}).encode())] == [7]
    with pytest.raises(ValueError, match="not what squeue --json prints"):
        parse_squeue(json.dumps({"jobs": odd[:1]}).encode())


SCONTROL = (
    "JobId=7 ArrayJobId=3 ArrayTaskId=1 ArrayTaskThrottle=2 JobName=job.sh UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A "
    "Priority=4294901757 JobState=RUNNING Reason=None Dependency=(null) ReqNodeList=(null) ExcNodeList=(null) NodeList=n3 BatchHost=n3\n"
    "JobId=3 ArrayJobId=3 ArrayTaskId=2-4%2 ArrayTaskThrottle=2 JobName=job.sh UserId=ada(1000) GroupId=ada(1000) "
    "JobState=PENDING Reason=Resources ReqNodeList=(null) ExcNodeList=(null) NodeList=(null)\n"
    "JobId=5 HetJobId=4 HetJobOffset=1 JobName=job.sh HetJobIdSet=4-5 UserId=ada(1000) GroupId=ada(1000) JobState=RUNNING "
    "Reason=None NodeList=n[1-2]\n"
)


def test_lines_of_scontrol() -> None:
    """The same facts from `scontrol --oneliner show job`."""
    element, rest, component = parse_scontrol(SCONTROL)
    assert (element.text, element.nodes, element.is_running) == ("3_1", "n3", True)
    assert (rest.text, rest.nodes, rest.count, rest.reason) == ("3_[2-4]", "", 3, "Resources")
    assert (component.text, component.nodes) == ("4+1", "n[1-2]")


def test_a_name_of_a_job_is_no_field() -> None:
    """Whoever names a job `JobState=RUNNING NodeList=login1` sends nobody there; nor does a comment."""
    line = (
        "JobId=9 JobName=x JobState=RUNNING NodeList=evil ArrayJobId=1 UserId=ada(1) GroupId=ada(1) JobState=PENDING "
        "NodeList=(null) Comment=NodeList=evil JobState=RUNNING\n"
    )
    (job,) = parse_scontrol(line)
    assert (job.states, job.nodes, job.array_id) == (("PENDING",), "", 0)


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("2-4%2", [2, 3, 4]),
        ("7", [7]),
        ("0-8:4,9", [0, 4, 8, 9]),
        ("1-2,...", [1, 2]),
        ("", []),
        ("x-3,4", [4]),
    ],
)
def test_array_elements(text: str, elements: list[int]) -> None:
    """Ranges with strides; the throttle is no element; what is cut short is left out."""
    assert [task for part in parse_tasks(text) for task in part] == elements


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_one_way(text: bytes) -> None:
    """ValueError and nothing else."""
    with contextlib.suppress(ValueError):
        parse_squeue(text)


@given(st.text(max_size=300))
def test_any_text_of_scontrol_gives_jobs_or_none(text: str) -> None:
    """Never an error."""
    for job in parse_scontrol("JobId=" + text):
        assert job.text
