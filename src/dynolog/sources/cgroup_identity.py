"""Which container, pod and SLURM job a process is in, by the paths of its control groups (`/proc/PID/cgroup`, cgroups(7))."""

import re

import msgspec

# Scopes and directories that runtimes name after a container: `docker-<id>.scope`, `cri-containerd-<id>.scope`, `crio-<id>.scope`,
# `libpod-<id>.scope`, `...:cri-containerd:<id>`, and with the cgroupfs driver only `<id>`.
_CONTAINER = re.compile(
    r"(?:^|[/:])(?:(docker|cri-containerd|containerd|nerdctl|crio|libpod|crio-conmon|libpod-conmon)[-:])?"
    r"([0-9a-f]{64})(?:\.scope|\.service)?(?=$|[/:])"
)
_RUNTIMES = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "libpod": "podman",
}
# What stands before a bare id tells the runtime where there is no prefix.
_PARENTS = {
    "docker": "docker",
    "libpod_parent": "podman",
    "crio": "cri-o",
    "default": "containerd",
    "k8s.io": "containerd",
}
# `pod<uid>`, `kubepods-burstable-pod<uid with _>.slice`; a static pod has the hash of its file for a uid.
_POD = re.compile(
    r"(?:^|[/-])pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?=$|[/:])"
)
_SLURM_JOB = re.compile(r"slurm[^/]*/(?:[^/]+/)*?job_(\d{1,20})(?=$|/)")


class CgroupIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The innermost container and pod; "" for what a path does not show. `runtime`: docker, containerd, cri-o, podman."""

    container_id: str = ""
    runtime: str = ""
    pod_uid: str = ""
    slurm_job_id: str = ""


def parse_cgroup(text: str) -> CgroupIdentity:
    """The identity in the content of `/proc/PID/cgroup`, of version 1, 2 and both at once."""
    paths = [line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2]
    container, runtime = next(filter(None, map(_container, paths)), ("", ""))
    pods = (uids[-1] for path in paths if (uids := _POD.findall(path)))
    jobs = (job[1] for path in paths if (job := _SLURM_JOB.search(path)))
    return CgroupIdentity(
        container_id=container,
        runtime=runtime,
        pod_uid=next(pods, "").replace("_", "-"),
        slurm_job_id=next(jobs, ""),
    )


def _container(path: str) -> tuple[str, str] | None:
    """Id and runtime of the last container in a path: with containers in containers, the one that the process is in."""
    last = None
    for found in _CONTAINER.finditer(path):
        last = found
    if last is None:
        return None
    prefix, container_id = last.groups()
    parent = path[: last.start()].rpartition("/")[2]
    return container_id, _RUNTIMES.get(prefix or "", "") or _PARENTS.get(parent, "")
