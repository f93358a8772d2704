"""What `dyno doctor` says of the kernel, capabilities, GPUs, directories: each thing when it is missing and when it is there."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.cli.doctor.capability_checks import check_capabilities
from dynolog.cli.doctor.finding import Level
from dynolog.cli.doctor.gpu_checks import check_gpus
from dynolog.cli.doctor.kernel_checks import (
    check_cgroups,
    check_hidden_processes,
    check_open_files,
    check_perf,
    check_pressure,
    check_ptrace_scope,
    check_queue,
    check_user_namespaces,
)
from dynolog.cli.doctor.place_checks import Place, Room, check_places, judge, places_of, room_at
from dynolog.sources.process_privileges import CAPABILITIES, Privileges
from fakes.doctor import ROOT, USER, evidence, found, levels, local_daemon, seen, survey
from fakes.proc_tree import ProcTree
from fakes.services import trainer

PERFMON = msgspec.structs.replace(USER, capabilities=1 << CAPABILITIES["CAP_PERFMON"])


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


@pytest.mark.parametrize(
    ("level", "rights", "flags", "expected"),
    [
        ("2", ROOT, {}, Level.OK),
        ("4", PERFMON, {}, Level.NOTE),
        ("2", PERFMON, {}, Level.OK),
        ("0", USER, {}, Level.OK),
        ("2", USER, {}, Level.NOTE),
        ("2", USER, {"enable_perf_monitor": "true"}, Level.WRONG),
    ],
)
def test_perf_depends_on_the_level_and_the_capability(
    tree: ProcTree, level: str, rights: Privileges, flags: dict[str, str], expected: Level
) -> None:
    """It is wrong only when somebody asked for it."""
    tree.write("proc/sys/kernel/perf_event_paranoid", level)
    assert levels(check_perf, evidence(tree.host, daemon=local_daemon(rights, **flags))) == [expected]


def test_perf_names_the_capability_that_the_level_asks_for(tree: ProcTree) -> None:
    tree.write("proc/sys/kernel/perf_event_paranoid", "4")
    ((_, text),) = found(check_perf, evidence(tree.host, daemon=local_daemon(PERFMON)))
    assert "has no CAP_SYS_ADMIN -> sysctl -w kernel.perf_event_paranoid=0" in text


def test_a_seccomp_filter_is_said(tree: ProcTree) -> None:
    tree.write("proc/sys/kernel/perf_event_paranoid", "1")
    filtered = msgspec.structs.replace(ROOT, seccomp=2)
    _, (level, text) = found(check_perf, evidence(tree.host, daemon=local_daemon(filtered)))
    assert level == "note"
    assert text.endswith("--cap-add=PERFMON,SYS_ADMIN, others: a seccomp profile with perf_event_open")


def test_without_a_daemon_the_rights_of_this_user_count(tree: ProcTree) -> None:
    tree.write("proc/sys/kernel/perf_event_paranoid", "2")
    ((level, text),) = found(check_perf, evidence(tree.host, daemon=None, status=None, own=USER))
    assert level == "note"
    assert "a daemon of this user has no CAP_PERFMON" in text


@pytest.mark.parametrize(("polling", "expected"), [(11, Level.OK), (12, Level.NOTE), (200, Level.WRONG)])
def test_a_short_queue_is_judged_by_how_many_poll(tree: ProcTree, polling: int, expected: Level) -> None:
    tree.write("proc/sys/net/unix/max_dgram_qlen", "10")
    trainers = [trainer(pid) for pid in range(1, polling + 1)]
    assert levels(check_queue, evidence(tree.host, trainers=trainers)) == [expected]


def test_processes_that_have_not_registered_will_poll_too(tree: ProcTree) -> None:
    tree.write("proc/sys/net/unix/max_dgram_qlen", "1")
    assert levels(check_queue, evidence(tree.host, survey=survey(*map(seen, range(1, 4))))) == [Level.NOTE]


@pytest.mark.parametrize(
    ("rights", "options", "expected"),
    [
        (USER, "rw", Level.OK),
        (USER, "rw,hidepid=2", Level.WRONG),
        (USER, "rw,hidepid=2,gid=1000", Level.OK),
        (ROOT, "rw,hidepid=2", Level.OK),
    ],
)
def test_hidepid_matters_to_who_is_not_excepted(
    tree: ProcTree, rights: Privileges, options: str, expected: Level
) -> None:
    tree.write("proc/self/mountinfo", f"22 27 0:21 / /proc rw - proc proc {options}\n")
    assert levels(check_hidden_processes, evidence(tree.host, daemon=local_daemon(rights))) == [expected]


def test_the_rest_of_the_kernel_both_ways(tree: ProcTree) -> None:
    known = evidence(tree.host)
    assert levels(check_cgroups, known) == [Level.NOTE]
    assert levels(check_pressure, known) == [Level.NOTE]
    assert levels(check_ptrace_scope, known) == []
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu")
    tree.write("proc/pressure/cpu", "some avg10=0.00")
    tree.write("proc/sys/kernel/yama/ptrace_scope", "1")
    assert (
        levels(check_cgroups, known) == levels(check_pressure, known) == levels(check_ptrace_scope, known) == [Level.OK]
    )


def test_a_user_namespace_is_said(tree: ProcTree) -> None:
    nested = msgspec.structs.replace(ROOT, is_in_user_namespace=True)
    assert levels(check_user_namespaces, evidence(tree.host)) == []
    assert levels(check_user_namespaces, evidence(tree.host, daemon=local_daemon(nested))) == [Level.NOTE]


def test_the_limit_of_open_files_must_hold_all_trainers(tree: ProcTree) -> None:
    few = local_daemon(msgspec.structs.replace(ROOT, open_files_limit=1024))
    assert levels(check_open_files, evidence(tree.host, daemon=few)) == [Level.OK]
    many = evidence(tree.host, daemon=few, trainers=[trainer(pid) for pid in range(1, 601)])
    assert levels(check_open_files, many) == [Level.WRONG]


def test_each_capability_is_named_with_what_it_gives(tree: ProcTree) -> None:
    assert levels(check_capabilities, evidence(tree.host)) == [Level.OK]
    said = found(check_capabilities, evidence(tree.host, daemon=local_daemon(USER)))
    assert [level for level, _ in said] == ["note"] * 5
    assert "uid 1000, not root" in said[0][1]
    assert said[1][1].startswith("without CAP_SYS_PTRACE: ")
    assert said[1][1].endswith("--cap-add=SYS_PTRACE")
    # An ambient capability that the bounding set lacks cannot be had.
    assert "CapabilityBoundingSet=CAP_SYS_PTRACE and AmbientCapabilities=CAP_SYS_PTRACE in its unit" in said[1][1]
    # The sandbox of the unit without root forbids setns(2) and chroot(2), whatever the capabilities.
    assert "-> systemctl enable --now dynolog (dynolog.service runs as root)" in said[2][1]
    assert "CAP_SYS_CHROOT, CAP_SETUID, CAP_SETGID" in said[3][1]
    bare = found(
        check_capabilities, evidence(tree.host, daemon=local_daemon(msgspec.structs.replace(ROOT, capabilities=0)))
    )
    assert "-> CapabilityBoundingSet=CAP_SYS_PTRACE in its unit (systemctl edit dynolog); in a cont" in bare[1][1]


def test_a_capability_that_a_flag_needs_is_wrong_to_lack(tree: ProcTree) -> None:
    said = found(check_capabilities, evidence(tree.host, daemon=local_daemon(USER, ipc_namespaces="true")))
    assert next(text for level, text in said if level == "wrong").startswith(
        "--ipc_namespaces is set, but without CAP_SYS_ADMIN"
    )


def nvidia(tree: ProcTree, *, driver: str = "550.54.15", library: str = "550.54.15") -> None:
    tree.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200")
    tree.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de")
    if driver:
        tree.write("proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue\n")
    if library:
        tree.write(f"usr/lib64/libnvidia-ml.so.{library}", "")
        (tree.root / "usr/lib64/libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{library}")


def gpu_words(tree: ProcTree, **changes: Any) -> str:
    return "\n".join(f"{level}: {text}" for level, text in found(check_gpus, evidence(tree.host, **changes)))


def test_a_machine_without_gpus_misses_nothing(tree: ProcTree) -> None:
    assert levels(check_gpus, evidence(tree.host)) == [Level.OK]


def test_a_gpu_without_its_driver(tree: ProcTree) -> None:
    nvidia(tree, driver="")
    assert "wrong: an NVIDIA GPU is here, and its kernel driver is not loaded -> modprobe nvidia" in gpu_words(tree)


def test_a_driver_without_its_library(tree: ProcTree) -> None:
    nvidia(tree, library="")
    assert (
        "wrong: NVIDIA's driver 550.54.15 is loaded, and libnvidia-ml.so.1 was found in no library directory"
        in gpu_words(tree)
    )


def test_a_library_of_another_version_than_the_driver(tree: ProcTree) -> None:
    nvidia(tree, library="555.42.02")
    assert "is 555.42.02: every call fails until both are the same -> reboot" in gpu_words(tree)


def test_a_whole_nvidia_machine(tree: ProcTree) -> None:
    nvidia(tree)
    tree.write("usr/lib64/libdcgm.so.4", "")
    words = gpu_words(tree, survey=survey(seen(9, name="nv-hostengine", torch=None, is_python=False)))
    assert "ok: NVIDIA driver 550.54.15" in words
    assert "nv-hostengine runs" in words
    assert "wrong" not in words
    assert "the daemon does not look at them -> start it with --enable_gpu_monitor" in words
    assert "note: " in words
    assert "nv-hostengine does not run" in gpu_words(tree)


@pytest.mark.parametrize(
    ("vendor", "module", "expected"),
    [("0x1002", "", "wrong"), ("0x1002", "amdgpu", "ok"), ("0x8086", "", "note"), ("0x8086", "xe", "ok")],
)
def test_gpus_of_other_makers_need_their_driver(tree: ProcTree, vendor: str, module: str, expected: str) -> None:
    tree.write("sys/bus/pci/devices/0000:03:00.0/class", "0x030000")
    tree.write("sys/bus/pci/devices/0000:03:00.0/vendor", vendor)
    if module:
        tree.write(f"sys/module/{module}/refcnt", "1")
    assert gpu_words(tree).startswith(expected)


def test_device_files_that_the_daemon_may_not_open(tree: ProcTree) -> None:
    nvidia(tree)
    tree.write("dev/nvidia0", "")
    os.chmod(tree.root / "dev/nvidia0", 0o600)
    stranger = msgspec.structs.replace(USER, uid=54321, gid=54321)
    assert f"(uid 54321) may not open {tree.root}/dev/nvidia0" in gpu_words(tree, daemon=local_daemon(stranger))
    os.chmod(tree.root / "dev/nvidia0", 0o666)
    assert "may not open" not in gpu_words(tree, daemon=local_daemon(stranger))


def room(**changes: object) -> Room:
    fields: dict[str, object] = {"nearest": "/", "info": os.stat("/"), "free_bytes": 1 << 40, "free_inodes": 1000}
    return Room(**(fields | changes))  # type: ignore[arg-type] # what a test says


def test_a_place_needs_room_inodes_and_the_right_to_write() -> None:
    place = Place("/var/log/d/d.log", "the log", "make room, or another --log_file")
    assert judge(place, room(), ROOT, "the daemon").level is Level.OK
    full = judge(place, room(free_bytes=1000), ROOT, "the daemon")
    assert (full.level, full.text) == (Level.WRONG, "/var/log/d/d.log (the log) has 1.0 kB left")
    assert judge(place, room(free_inodes=3), ROOT, "the daemon").level is Level.WRONG
    assert judge(place, room(free_inodes=None), ROOT, "the daemon").level is Level.OK
    closed = judge(place, room(), msgspec.structs.replace(USER, uid=54321, gid=54321), "the daemon")
    assert closed.level is Level.WRONG
    assert "(uid 54321) may not write /var/log/d/d.log" in closed.text


def test_the_places_are_those_of_the_running_daemon(tree: ProcTree, tmp_path: Path) -> None:
    known = evidence(tree.host, daemon=local_daemon(log_file="d.log", spool_dir="/var/spool/d"))
    assert [place.path for place in places_of(known)] == ["/tmp", "/d.log", "/var/spool/d"]
    assert len(levels(check_places, known)) == 3
    assert room_at(str(tmp_path / "a/b/c")).nearest == str(tmp_path)
