"""The hosts of a SLURM job, with stand-ins for squeue and scontrol."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.slurm import parse_job_id
from dynolog.fleet.targets import HostsError, HostSet, find_hosts
from dynolog.profiling.job import parse_job
from fakes.tools import Tools

DATA = Path(__file__).resolve().parents[2] / "data" / "slurm"
RECORDED = (DATA / "squeue-22.05.json").read_text()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tools.directory))
    return tools


def find(job: str) -> HostSet:
    return find_hosts({"--slurm-job": job})


def hosts(found: HostSet) -> list[str]:
    return [target.host for target in found.targets]


@pytest.mark.parametrize(
    ("job", "expected", "job_text"),
    [
        ("10", ["n3"], "10"),
        ("10_1", ["n3"], "10_1"),
        ("10_[1-3]", ["n3"], "10_[1-3]"),
        ("11", ["n3"], "11"),  # an element's own id
        ("8", ["n1", "n2"], "8"),
        ("8+1", ["n2"], "8"),  # SLURM gives every component's processes the first one's id
        ("9", ["n2"], "8"),
        ("8.0", ["n1", "n2"], "8.0"),
        (" 8 ", ["n1", "n2"], "8"),
    ],
)
def test_hosts_and_job_of_each_form(tools: Tools, job: str, expected: list[str], job_text: str) -> None:
    """squeue 22.05 prints every job, whatever it is asked for; only those that are meant count."""
    tools.put("squeue", RECORDED)
    found = find(job)
    assert (hosts(found), found.job) == (expected, job_text)
    (call,) = tools.calls("squeue")
    assert call == f"--json --all --states=all --jobs={parse_job_id(job).base}"


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        ("10_2", r"job 10_2 is pending \(Resources\): it has no hosts yet"),
        ("2", r"job 2 is over \(cancelled\)"),
        ("1", r"job 1 is over \(completed\)"),
        ("99", "SLURM knows no job 99"),
        ("10_9", "SLURM knows no job 10_9"),
        ("8+2", r"SLURM knows no job 8\+2"),
        ("1+0", r"SLURM knows no job 1\+0"),
    ],
)
def test_a_job_without_hosts_says_why(tools: Tools, job: str, sentence: str) -> None:
    """Pending, over and unknown are three things."""
    tools.put("squeue", RECORDED)
    with pytest.raises(HostsError, match=sentence):
        find(job)


def test_part_of_an_array_is_said(tools: Tools) -> None:
    """What runs is meant; what does not is counted."""
    tools.put("squeue", RECORDED)
    assert find("10_[1-3]").notes == ("2 of job 10_[1-3] pending (Resources): not traced",)
    assert find("10").notes == ("3 of job 10 pending (Resources): not traced",)


@pytest.mark.parametrize(
    "job", ["", "x", "10_", "10_[", "10_[5-1]", "10_1+2", "+1", "10+", "-1", "10;ls", "10_[1-99999999]", "1" * 40, "١٠"]
)
def test_texts_that_are_no_job(tools: Tools, job: str) -> None:
    """Refused before any tool is asked; `--slurm-job=` alone is no option given."""
    tools.put("squeue", RECORDED)
    with pytest.raises(HostsError):
        parse_job_id(job)
    assert tools.calls("squeue") == []


def test_an_unknown_job_of_later_versions(tools: Tools) -> None:
    """They end with 1 and say so."""
    tools.put("squeue", stderr="slurm_load_jobs error: Invalid job id specified\n", exit_code=1)
    with pytest.raises(HostsError, match="SLURM knows no job 10"):
        find("10")


LINE = "JobId=10 JobName=a UserId=ada(1) GroupId=ada(1) JobState=RUNNING Reason=None NodeList=gpu[09-11]\n"


@pytest.mark.parametrize("squeue", ["missing", "old", "broken"])
def test_scontrol_where_squeue_cannot(tools: Tools, squeue: str) -> None:
    """squeue not there, without --json, or printing something else: scontrol tells the same, and expands host lists."""
    if squeue == "old":
        tools.put("squeue", stderr="squeue: unrecognized option '--json'\n", exit_code=1)
    if squeue == "broken":
        tools.put("squeue", "JOBID PARTITION\n")
    tools.put(
        "scontrol", script=f"if [ \"$2\" = hostnames ]; then echo gpu09; echo gpu10; else printf '%s' '{LINE}'; fi"
    )
    assert hosts(find("10")) == ["gpu09", "gpu10"]
    assert tools.calls("scontrol") == ["--oneliner show job 10", "show hostnames gpu[09-11]"]


def test_host_lists_without_scontrol(tools: Tools) -> None:
    """Our own reading keeps zeros and makes every combination."""
    job: dict[str, Any] = {"job_id": 10, "job_state": ["RUNNING"], "nodes": "gpu[09-10,101],rack[0-1]_blade[0-1]"}
    tools.put("squeue", json.dumps({"jobs": [job]}))
    blades = ["rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1"]
    assert hosts(find("10")) == ["gpu09", "gpu10", "gpu101", *blades]


def test_no_tools_and_no_answer(tools: Tools) -> None:
    """Each is said with what to do."""
    with pytest.raises(HostsError, match="neither squeue nor scontrol is on PATH"):
        find("10")
    down = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    tools.put("squeue", stderr=down, exit_code=1)
    tools.put("scontrol", stderr=down, exit_code=1)
    with pytest.raises(HostsError, match=r"SLURM does not say where job 10 runs \(squeue: .*Unable to contact"):
        find("10")


@given(st.integers(0, 10**12), st.integers(0, 9999), st.sampled_from(["{}", "{}_{}", "{}_[1,{}]", "{}.{}", "{}+{}"]))
def test_a_job_text_is_one_that_daemons_match_on(base: int, number: int, form: str) -> None:
    """Whatever is accepted here, the daemon accepts as well (a component goes there as its job)."""
    wanted = parse_job_id(form.format(base, number))
    assert wanted.base == str(base)
    parse_job(wanted.selector.text)
