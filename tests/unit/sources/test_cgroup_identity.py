"""Container, pod and job by the paths of control groups, as runtimes and drivers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.cgroup_identity import CgroupIdentity, parse_cgroup

ID = "3f2a" * 16
OTHER = "07bc" * 16
UID = "8d5b3a2e-0f31-4c6a-9a52-1c4f5d6e7f80"
UNDERSCORED = UID.replace("-", "_")


@pytest.mark.parametrize(
    ("path", "runtime", "pod"),
    [
        (f"/docker/{ID}", "docker", ""),
        (f"/system.slice/docker-{ID}.scope", "docker", ""),
        (f"/system.slice/docker-{ID}.scope/init.scope", "docker", ""),
        (f"/machine.slice/libpod-{ID}.scope/container", "podman", ""),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container", "podman", ""),
        (f"/libpod_parent/libpod-{ID}", "podman", ""),
        (f"/system.slice/nerdctl-{ID}.scope", "containerd", ""),
        (f"/default/{ID}", "containerd", ""),
        (f"/kubepods/burstable/pod{UID}/{ID}", "", UID),
        (f"/kubepods/pod{UID}/{ID}", "", UID),
        (f"/kubepods/besteffort/pod{UID}/crio-{ID}", "cri-o", UID),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
            "containerd",
            UID,
        ),
        (f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-{ID}.scope", "cri-o", UID),
        (f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/docker-{ID}.scope", "docker", UID),
        (
            f"/system.slice/containerd.service/kubepods-besteffort-pod{UNDERSCORED}.slice:cri-containerd:{ID}",
            "containerd",
            UID,
        ),
        (f"/kubepods/burstable/pod{'0123456789abcdef' * 2}/{ID}", "", "0123456789abcdef" * 2),
        # A cluster in a container (kind): the inner one counts.
        (
            f"/docker/{OTHER}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
            "containerd",
            UID,
        ),
        # Seen from within a control group namespace.
        (f"/../../kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope", "containerd", UID),
    ],
)
def test_paths_of_runtimes_and_drivers(path: str, runtime: str, pod: str) -> None:
    """Version 2 alone, and version 1 whose other hierarchies say nothing."""
    expected = CgroupIdentity(container_id=ID, runtime=runtime, pod_uid=pod)
    assert parse_cgroup(f"0::{path}\n") == expected
    assert (
        parse_cgroup(f"13:rdma:/\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::/system.slice/x.service\n")
        == expected
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/\n",
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        f"0::/system.slice/{ID[:63]}.service\n",
        f"0::/x{ID}\n",
        "0::/kubepods/podcast\n",
        "garbage\n1:2\n",
    ],
)
def test_other_paths_are_in_no_container(text: str) -> None:
    assert parse_cgroup(text) == CgroupIdentity()


@pytest.mark.parametrize(
    "path",
    [
        "/system.slice/slurmstepd.scope/job_90210/step_0/user/task_0",
        "/system.slice/node7_slurmstepd.scope/job_90210/step_batch",
        "/slurm/uid_1000/job_90210/step_0",
        "/slurm_node7/uid_1000/job_90210/step_extern",
    ],
)
def test_slurm_names_its_groups_after_the_job(path: str) -> None:
    assert parse_cgroup(f"0::{path}\n").slurm_job_id == "90210"
    assert parse_cgroup("0::/user.slice/job_90210\n").slurm_job_id == ""


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    parse_cgroup(text)


@given(
    st.sampled_from(["docker-{}.scope", "cri-containerd-{}.scope", "crio-{}.scope", "libpod-{}.scope", "{}"]),
    st.text("0123456789abcdef", min_size=64, max_size=64),
    st.uuids(),
    st.booleans(),
    st.lists(st.text("abcxyz.-_", min_size=1, max_size=9).filter(lambda name: name not in (".", "..")), max_size=3),
)
def test_an_id_is_found_wherever_the_hierarchy_is_mounted(
    scope: str, container: str, uid: object, systemd: bool, above: list[str]
) -> None:
    pod = f"kubepods-pod{str(uid).replace('-', '_')}.slice" if systemd else f"pod{uid}"
    found = parse_cgroup(f"0::/{'/'.join([*above, pod, scope.format(container)])}\n")
    assert (found.container_id, found.pod_uid) == (container, str(uid))
