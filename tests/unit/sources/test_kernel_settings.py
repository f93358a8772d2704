"""Sysctls, hidepid, PSI, the cgroup version, the state of the clock."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.clock_sync import ClockSync, judge, read_clock_sync
from dynolog.sources.host_files import HostFiles
from dynolog.sources.kernel_settings import cgroup_version, parse_hidepid, psi_trouble, sysctl
from fakes.proc_tree import ProcTree


def test_a_number_below_proc_sys(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    tree.write("proc/sys/kernel/perf_event_paranoid", "-1\n")
    tree.write("proc/sys/kernel/core_pattern", "core\n")
    assert sysctl(tree.host, "kernel/perf_event_paranoid") == -1
    assert sysctl(tree.host, "kernel/core_pattern") is None
    assert sysctl(tree.host, "kernel/yama/ptrace_scope") is None


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("rw", (0, None)),
        ("rw,hidepid=2", (2, None)),
        ("rw,hidepid=invisible,gid=27", (2, 27)),
        ("rw,gid=27,hidepid=noaccess", (1, 27)),
        ("rw,hidepid=ptraceable", (4, None)),
        ("rw,hidepid=off", (0, None)),
    ],
)
def test_hidepid_has_numbers_and_names(options: str, found: tuple[int, int | None]) -> None:
    other = "27 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,hidepid=2\n"
    line = f"22 27 0:21 / /proc rw,nosuid shared:12 - proc proc {options}\n"
    assert parse_hidepid((other + line).encode()) == found


def test_the_last_mount_of_proc_counts() -> None:
    lines = b"22 27 0:21 / /proc rw - proc proc rw,hidepid=2\n99 22 0:30 / /proc rw - proc proc rw\n"
    assert parse_hidepid(lines) == (0, None)


@given(st.binary())
def test_no_mountinfo_breaks_it(text: bytes) -> None:
    parse_hidepid(text)


class Answering(HostFiles):
    """Every read fails with one errno, or gives nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def read(self, relative: str) -> bytes:
        assert relative == "proc/pressure/cpu"
        if self._number:
            raise OSError(self._number, "no")
        return b"some avg10=0.00\n"


@pytest.mark.parametrize(("number", "trouble"), [(0, ""), (errno.EOPNOTSUPP, "off"), (errno.ENOENT, "missing")])
def test_psi_that_is_off_is_told_from_psi_that_is_not_there(number: int, trouble: str) -> None:
    assert psi_trouble(Answering(number)) == trouble


def test_the_cgroup_version(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    assert cgroup_version(tree.host) == 0
    tree.write("sys/fs/cgroup/memory/tasks", "")
    assert cgroup_version(tree.host) == 1
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    assert cgroup_version(tree.host) == 2


@pytest.mark.parametrize(
    ("state", "status", "synchronised"),
    [(0, 0x2001, True), (5, 0x2041, False), (0, 0x40, False), (5, 0, False), (1, 0x2001, True)],
)
def test_the_kernels_word_on_the_clock(state: int, status: int, synchronised: bool) -> None:
    assert judge(state, status, 12_000) == ClockSync(synchronised, 12_000)


def test_this_machines_clock_can_be_asked() -> None:
    assert 0 <= read_clock_sync().max_error_us <= 16_000_000 + 1_000_000
