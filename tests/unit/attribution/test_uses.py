"""From processes to uses: which belong together, and which labels the device's record gets."""

from typing import Any

from dynolog.attribution.process_identity import ProcessIdentity
from dynolog.attribution.uses import JOB_MEMORY, JOB_PROCESSES, Member, device_attribution
from dynolog.model.gpu import GpuProcess
from dynolog.sources.cgroup_identity import CgroupIdentity
from dynolog.sources.pod_names import PodName

GIB = 1 << 30
POD_A = {"pod_namespace": "research", "pod_name": "train-0", "container_name": "pytorch"}
POD_B = {"pod_namespace": "research", "pod_name": "eval-0", "container_name": "pytorch"}


def member(pid: int, memory: int | None = GIB, *, job: str = "", user: str = "ada", **more: Any) -> Member:
    labels = {"username": user, **({"job_id": job} if job else {})}
    more.setdefault("uid", 1000 if user == "ada" else 1001)
    identity = ProcessIdentity(pid=pid, start_time_ticks=1, user=user, labels=labels, user_label="username", **more)
    return GpuProcess(pid=pid, used_memory_bytes=memory), identity


def in_container(container: str, pod: PodName | None = None) -> dict[str, Any]:
    uid = "u-" + pod.pod if pod else ""
    return {"cgroup": CgroupIdentity(container_id=container * 64, runtime="containerd", pod_uid=uid), "pod": pod}


def test_nobody_on_a_device() -> None:
    found = device_attribution([])
    assert (found.labels, found.uses) == ({}, ())


def test_one_job_gives_its_labels_to_the_device() -> None:
    found = device_attribution([member(5, job="90210_7"), member(6, 3 * GIB, job="90210_7")])
    assert found.labels == {"job_id": "90210_7", "username": "ada"}
    (use,) = found.uses
    assert (use.pids, use.values) == ((5, 6), {JOB_PROCESSES: 2, JOB_MEMORY: 4 * GIB})


def test_several_jobs_give_the_device_only_what_they_share() -> None:
    found = device_attribution([member(5, job="2"), member(6, 3 * GIB, job="1"), member(7, job="2")])
    assert found.labels == {"username": "ada"}
    assert [(use.labels["job_id"], use.pids, use.values[JOB_MEMORY]) for use in found.uses] == [
        ("1", (6,), 3 * GIB),
        ("2", (5, 7), 2 * GIB),
    ]


def test_memory_that_the_driver_does_not_say_is_missing_and_not_zero() -> None:
    (use,) = device_attribution([member(5, None, job="1"), member(6, job="1")]).uses
    assert use.values == {JOB_PROCESSES: 2}


def test_daemons_of_the_system_and_processes_not_yet_looked_at_do_not_make_a_second_use() -> None:
    system = member(9, user="root", uid=0)
    unknown: Member = (GpuProcess(pid=10), None)
    assert device_attribution([member(5, job="1"), system, unknown]).labels["job_id"] == "1"
    assert [use.labels for use in device_attribution([system]).uses] == [{"username": "root"}]
    assert [use.pids for use in device_attribution([unknown]).uses] == [(10,)]


def test_a_person_beside_a_job_is_a_use() -> None:
    """Somebody who runs on the device of another's job is the very thing to see."""
    found = device_attribution([member(5, job="1"), member(6, user="eve")])
    assert [use.labels["username"] for use in found.uses] == ["ada", "eve"]
    assert found.labels == {}


def test_containers_without_a_job_are_told_apart() -> None:
    found = device_attribution([member(5, **in_container("a")), member(6, **in_container("b"))])
    assert [use.labels["container_id"] for use in found.uses] == ["a" * 12, "b" * 12]
    assert found.labels == {"username": "ada", "container_runtime": "containerd"}


def test_the_pod_that_has_a_device_to_itself_is_that_of_its_processes() -> None:
    found = device_attribution([member(5, **in_container("a"))], [POD_A])
    assert found.labels.items() >= POD_A.items()
    assert len(found.uses) == 1


def test_a_pod_that_does_nothing_yet_has_its_device_all_the_same() -> None:
    found = device_attribution([], [POD_A])
    assert found.labels == POD_A
    assert [(use.labels, use.pids) for use in found.uses] == [(POD_A, ())]


def test_of_pods_that_share_a_device_the_container_tells_which() -> None:
    """Time-slicing."""
    name = PodName(namespace="research", pod="train-0", container="pytorch")
    found = device_attribution([member(5, **in_container("a", name))], [POD_A, POD_B])
    assert [(use.labels["pod_name"], use.pids) for use in found.uses] == [("train-0", (5,)), ("eval-0", ())] or [
        (use.labels["pod_name"], use.pids) for use in found.uses
    ] == [("eval-0", ()), ("train-0", (5,))]
    assert found.labels == {"pod_namespace": "research", "container_name": "pytorch"}


def test_of_pods_that_share_a_device_none_is_guessed_for_a_process() -> None:
    found = device_attribution([member(5, **in_container("a"))], [POD_A, POD_B])
    assert [use.labels.get("pod_name") for use in found.uses] == [None]
