"""Whose a process is, on trees that a test writes."""

from pathlib import Path

import pytest

from dynolog.attribution.environment_map import DEFAULT_MAP
from dynolog.attribution.process_identity import IdentityReader
from fakes.proc_tree import ProcTree

ID = "3f2a" * 16
UID = "8d5b3a2e-0f31-4c6a-9a52-1c4f5d6e7f80"


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    tree = ProcTree(tmp_path)
    tree.write("etc/passwd", "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/:/bin/sh\n")
    return tree


def reader(tree: ProcTree) -> IdentityReader:
    return IdentityReader(tree.host, DEFAULT_MAP)


def test_a_jobs_labels_come_from_the_mapped_variables_and_nothing_else_is_kept(tree: ProcTree) -> None:
    """H06."""
    secrets = "AWS_SECRET_ACCESS_KEY=hunter2,SLURM_JOB_NAME=x"
    tree.process(7, environ=f"{secrets},SLURM_JOB_ID=90210,SLURM_JOB_ACCOUNT=bio,SLURM_JOB_PARTITION=h100,USER=mallory")
    found = reader(tree).look(7)
    assert found.labels == {
        "job_id": "90210",
        "username": "ada",  # the kernel's word, not the variable's
        "slurm_account": "bio",
        "slurm_partition": "h100",
    }
    assert "hunter2" not in repr(found)
    assert found.job == {"job_id": "90210", "slurm_account": "bio", "slurm_partition": "h100"}
    assert (found.uid, found.user, found.start_time_ticks) == (1000, "ada", 100)


def test_an_element_of_an_array_is_called_as_squeue_calls_it(tree: ProcTree) -> None:
    """H01: a job id is text."""
    tree.process(7, environ="SLURM_JOB_ID=90217,SLURM_ARRAY_JOB_ID=90210,SLURM_ARRAY_TASK_ID=7")
    assert reader(tree).look(7).labels["job_id"] == "90210_7"


def test_the_job_of_the_control_group_stands_in_for_a_missing_variable(tree: ProcTree) -> None:
    """sudo and containers drop the environment."""
    group = "0::/system.slice/slurmstepd.scope/job_90210/step_0/user/task_0\n"
    tree.process(7, cgroup=group)
    assert reader(tree).look(7).labels["job_id"] == "90210"
    tree.process(7, cgroup=group, environ=None)
    found = reader(tree).look(7)
    assert (found.labels["job_id"], found.environment_is_known) == ("90210", False)


def test_a_user_without_a_name_is_the_variables_or_the_number(tree: ProcTree) -> None:
    """A directory service is never asked."""
    tree.process(7, uid=4711, environ="USER=grace")
    assert reader(tree).look(7).labels == {"username": "grace"}
    tree.process(7, uid=4711)
    assert reader(tree).look(7).labels == {"username": "4711"}


def test_a_mapping_of_ones_own(tree: ProcTree) -> None:
    tree.process(7, environ="PBS_JOBID=12.server,SLURM_JOB_ID=1,SLURM_ARRAY_JOB_ID=1,SLURM_ARRAY_TASK_ID=2")
    assert IdentityReader(tree.host, {"PBS_JOBID": "job"}).look(7).labels == {"job": "12.server"}


def test_a_value_is_printable_and_has_an_end(tree: ProcTree) -> None:
    tree.process(7, environ="SLURM_JOB_ACCOUNT=a\nb\x1b[2J,SLURM_JOB_PARTITION=" + "p" * 5000)
    assert reader(tree).look(7).labels["slurm_account"] == "a?b?[2J"
    assert "slurm_partition" not in reader(tree).look(7).labels
    tree.process(7, environ="SLURM_JOB_PARTITION=" + "p" * 1000)
    assert reader(tree).look(7).labels["slurm_partition"] == "p" * 256


def test_container_and_pod(tree: ProcTree) -> None:
    links = tree.root / "var/log/containers"
    links.mkdir(parents=True)
    (links / f"train-0_research_pytorch-{ID}.log").symlink_to("/nowhere")
    tree.process(7, cgroup=f"0::/kubepods/burstable/pod{UID}/{ID}\n")
    found = reader(tree).look(7)
    assert (found.cgroup.container_id, found.cgroup.pod_uid) == (ID, UID)
    assert found.pod is not None
    assert (found.pod.namespace, found.pod.pod, found.pod.container) == ("research", "train-0", "pytorch")


def test_a_process_that_has_gone_is_an_os_error_and_one_that_goes_meanwhile_costs_only_parts(tree: ProcTree) -> None:
    """C09."""
    with pytest.raises(OSError, match="No such file"):
        reader(tree).look(7)
    tree.process(7, state="Z")
    with pytest.raises(ProcessLookupError):
        reader(tree).start_time(7)
    tree.process(7, environ=None)
    assert reader(tree).start_time(7) == 100
    for name in ("status", "cgroup"):
        (tree.root / f"proc/7/{name}").unlink()
    found = reader(tree).look(7)
    assert (found.uid, found.user, found.labels) == (-1, "", {})
