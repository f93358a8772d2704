"""From the processes on a device to its uses: which belong together, and which labels that gives."""

from collections.abc import Iterable, Mapping, Sequence

from dynolog.attribution.labelling import DeviceAttribution, DeviceUse
from dynolog.attribution.process_identity import ProcessIdentity
from dynolog.model.gpu import GpuProcess
from dynolog.sources.pod_names import PodName

JOB_MEMORY = "gpu_job_memory_used_bytes"
JOB_PROCESSES = "gpu_job_processes"
# Where users begin (SYS_UID_MAX of login.defs(5)); what runs below belongs to the system.
_FIRST_USER_UID = 1000
_CONTAINER_ID_SHOWN = 12

Member = tuple[GpuProcess, ProcessIdentity | None]
Labels = Mapping[str, str]


def device_attribution(members: Sequence[Member], pods: Sequence[Labels] = ()) -> DeviceAttribution:
    """Who uses a device, by its processes and by the pods that the kubelet gave it to.

    Processes belong together by job, else by pod, container or user. Those of the system are a use only where there is no other. A pod
    that has the device to itself is the pod of all; of several, each process's container tells, and those without a process are uses too.
    """
    uses = []
    for group in _without_system(_grouped(members)):
        labels = _labels_of(group)
        if len(pods) == 1 and "pod_name" not in labels:
            labels.update(pods[0])
        uses.append(DeviceUse(labels=labels, values=_values(group), pids=_pids(group)))
    uses += [DeviceUse(labels=dict(labels)) for labels in _without_process(pods, uses)]
    uses.sort(key=lambda use: sorted(use.labels.items()))
    return DeviceAttribution(labels=_common(use.labels for use in uses), uses=tuple(uses))


def _without_process(pods: Sequence[Labels], uses: Sequence[DeviceUse]) -> list[Labels]:
    seen = {(use.labels.get("pod_namespace"), use.labels.get("pod_name")) for use in uses}
    if (None, None) in seen:  # a process of which it is not known may be theirs
        return []
    return [labels for labels in pods if (labels.get("pod_namespace"), labels.get("pod_name")) not in seen]


def _grouped(members: Sequence[Member]) -> list[list[Member]]:
    groups: dict[tuple[object, ...], list[Member]] = {}
    for member in members:
        groups.setdefault(_key(member[1]), []).append(member)
    return list(groups.values())


def _key(identity: ProcessIdentity | None) -> tuple[object, ...]:
    """What a process and others of its job have in common."""
    if identity is None:
        return ("unknown",)
    if job := identity.job:
        return ("job", *sorted(job.items()))
    cgroup = identity.cgroup
    if cgroup.pod_uid:
        return ("pod", cgroup.pod_uid)
    if cgroup.container_id:
        return ("container", cgroup.container_id)
    return ("user", identity.uid)


def _without_system(groups: list[list[Member]]) -> list[list[Member]]:
    """Drop daemons of the system and processes not looked at yet, unless nobody else is there."""
    others = [group for group in groups if not _is_system(group[0][1])]
    return others or groups


def _is_system(identity: ProcessIdentity | None) -> bool:
    return identity is None or (_key(identity)[0] == "user" and identity.uid < _FIRST_USER_UID)


def _labels_of(group: Sequence[Member]) -> dict[str, str]:
    return _common([_labels(identity) for _, identity in group if identity is not None])


def _labels(identity: ProcessIdentity) -> dict[str, str]:
    labels = dict(identity.labels)
    cgroup = identity.cgroup
    if cgroup.container_id:
        labels.setdefault("container_id", cgroup.container_id[:_CONTAINER_ID_SHOWN])
    if cgroup.runtime:
        labels.setdefault("container_runtime", cgroup.runtime)
    if cgroup.pod_uid:
        labels.setdefault("pod_uid", cgroup.pod_uid)
    if identity.pod is not None:
        labels |= pod_labels(identity.pod)
    return labels


def pod_labels(pod: PodName) -> dict[str, str]:
    """The labels of a pod's container."""
    return {"pod_namespace": pod.namespace, "pod_name": pod.pod, "container_name": pod.container}


def _common(all_labels: Iterable[Labels]) -> dict[str, str]:
    """The labels on which all agree."""
    found: dict[str, str] | None = None
    for labels in all_labels:
        found = (
            dict(labels) if found is None else {key: value for key, value in found.items() if labels.get(key) == value}
        )
    return found or {}


def _pids(group: Sequence[Member]) -> tuple[int, ...]:
    return tuple(sorted({process.pid for process, _ in group}))


def _values(group: Sequence[Member]) -> dict[str, int | float]:
    values: dict[str, int | float] = {JOB_PROCESSES: len(_pids(group))}
    known = [process.used_memory_bytes for process, _ in group]
    total = sum(memory for memory in known if memory is not None)
    if None not in known:  # a part would look like less
        values[JOB_MEMORY] = total
    return values
