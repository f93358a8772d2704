"""Facts of a process from recorded and live /proc files."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import (
    ENVIRONMENT_KEYS,
    Ancestor,
    ProcessReader,
    parse_command_line,
    parse_environment,
    parse_namespace_pids,
    parse_stat,
)
from fakes.collector_context import HostTree

REST = b" S 17 4242 4242 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 1 0 987654 1000 10"


@pytest.mark.parametrize("name", ["a) b (2) .sh", "nc (", "x\ny", ")", "python", ""])
def test_the_name_ends_at_the_last_bracket(name: str) -> None:
    """D17: names hold brackets, spaces and newlines."""
    stat = parse_stat(b"4242 (" + name.encode() + b")" + REST)
    assert (stat.pid, stat.name, stat.parent_pid, stat.start_time_ticks) == (4242, name, 17, 987654)


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_no_name_disturbs_the_rest(name: bytes) -> None:
    assert parse_stat(b"1 (" + name + b")" + REST).start_time_ticks == 987654


@given(st.binary(max_size=200))
def test_anything_else_is_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_stat(data)
    parse_namespace_pids(data)
    parse_command_line(data)
    assert set(parse_environment(data)) <= set(ENVIRONMENT_KEYS)


def test_only_the_named_variables_are_kept() -> None:
    """H06: an environment is full of secrets."""
    data = (
        b"AWS_SECRET=x\0RANK=3\0RANK=4\0XRANK=5\0SLURM_JOB_ID=90210\0SLURM_JWT=y\0NOEQUALS\0=z\0WORLD_SIZE="
        + b"9" * 5000
    )
    assert parse_environment(data) == {"RANK": "3", "SLURM_JOB_ID": "90210"}


def test_pids_in_namespaces_come_from_the_status() -> None:
    assert parse_namespace_pids(b"Name:\tx\nNSpid:\t645400\t324\t1\nThreads:\t1\n") == (645400, 324, 1)
    assert parse_namespace_pids(b"Name:\tx\nThreads:\t1\n") == ()  # before Linux 4.1
    assert parse_namespace_pids(b"NSpid:\tx\n") == ()


def process(tree: HostTree, pid: int, parent: int, namespaces: str) -> None:
    tree.write(f"proc/{pid}/stat", f"{pid} (p{pid}) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0")
    tree.write(f"proc/{pid}/status", f"NSpid:\t{namespaces}\n")


def test_ancestors_are_followed_with_their_pids_inside(host_tree: HostTree) -> None:
    process(host_tree, 500, 400, "500\t7")
    process(host_tree, 400, 300, "400\t1")
    process(host_tree, 300, 1, "300")
    process(host_tree, 1, 0, "1")
    facts = ProcessReader(HostFiles(str(host_tree.root))).facts(500)
    assert facts.namespace_pids == (500, 7)
    assert facts.ancestors == (Ancestor(400, (400, 1)), Ancestor(300, (300,)), Ancestor(1, (1,)))
    assert (facts.arguments, facts.environment, facts.holds_gpu, facts.pid_namespace) == ((), {}, False, 0)


def test_parents_that_form_a_ring_end_the_walk(host_tree: HostTree) -> None:
    process(host_tree, 5, 6, "5")
    process(host_tree, 6, 5, "6")
    assert len(ProcessReader(HostFiles(str(host_tree.root))).facts(5).ancestors) == 64


def test_a_process_that_holds_a_gpu_has_its_device_open(host_tree: HostTree) -> None:
    process(host_tree, 5, 1, "5")
    directory = host_tree.root / "proc/5/fd"
    directory.mkdir()
    reader = ProcessReader(HostFiles(str(host_tree.root)))
    for number, target in enumerate(("/dev/nvidiactl", "/dev/nvidia-uvm", "/tmp/dev/nvidia0", "socket:[5]")):
        (directory / str(number)).symlink_to(target)
    assert not reader.facts(5).holds_gpu
    (directory / "9").symlink_to("/dev/nvidia0")
    assert reader.facts(5).holds_gpu
    (directory / "9").unlink()
    (directory / "9").symlink_to("/dev/kfd")
    assert reader.facts(5).holds_gpu
    process(host_tree, 6, 1, "6")
    assert not reader.facts(6).holds_gpu


def test_a_process_that_has_gone_is_an_os_error(host_tree: HostTree) -> None:
    with pytest.raises(OSError, match="No such file"):
        ProcessReader(HostFiles(str(host_tree.root))).facts(77)


def test_a_live_process_is_read_as_psutil_reads_it(tmp_path: Path) -> None:
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    environment = {"RANK": "2", "SECRET": "s", "SLURM_JOB_ID": "90210"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        reader = ProcessReader(HostFiles())
        facts = reader.facts(child.pid)
        oracle = psutil.Process(child.pid)
        assert facts.stat.name == oracle.name()
        assert list(facts.arguments) == oracle.cmdline()
        assert facts.stat.parent_pid == os.getpid()
        assert facts.namespace_pids[0] == child.pid
        assert [ancestor.pid for ancestor in facts.ancestors] == [parent.pid for parent in oracle.parents()]
        assert facts.environment == {"RANK": "2", "SLURM_JOB_ID": "90210"}
        assert facts.pid_namespace == os.stat(f"/proc/{child.pid}/ns/pid").st_ino
        assert reader.exists(child.pid)
        child.kill()
    assert not reader.exists(child.pid)
