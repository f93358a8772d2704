"""Groups on many CPUs over a fake kernel, why the kernel refuses, descriptors, and cgroups."""

import errno
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import pytest

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_cgroups import MOST_CGROUPS, find_cgroups, open_cgroup, perf_cgroup_root
from dynolog.sources.perf_event.attributes import EventSpec
from dynolog.sources.perf_event.bank import Bank
from dynolog.sources.perf_event.descriptors import room_for
from dynolog.sources.perf_event.group import Group, Target
from dynolog.sources.perf_event.refusal import Why, refused
from dynolog.sources.perf_event.syscall import KernelCalls
from dynolog.sources.sockets_of_cpus import sockets_of
from fakes.collector_context import HostTree
from fakes.perf_kernel import Counter, FakePerfKernel

CYCLES = EventSpec(name="cycles", type=0, config=0)
INSTRUCTIONS = EventSpec(name="instructions", type=0, config=1)
RATES = {(0, 0): 1000.0, (0, 1): 500.0}


def bank_of(kernel: FakePerfKernel, *events: EventSpec, online: Sequence[int] = (0, 1)) -> Bank:
    bank = Bank(kernel, events or (CYCLES, INSTRUCTIONS))
    bank.follow(online)
    return bank


def test_a_group_is_read_in_one_call() -> None:
    kernel = FakePerfKernel(RATES)
    group = Group(kernel, (CYCLES, INSTRUCTIONS), Target(cpu=0))
    kernel.advance(1)
    reading = group.read()
    assert reading is not None
    assert reading.counts == (0, 0), "it is opened disabled"
    group.enable()
    kernel.advance(2)
    kernel.reads = 0
    reading = group.read()
    assert reading is not None
    assert (reading.counts, kernel.reads) == ((2000, 1000), 1)
    group.disable()
    kernel.advance(2)
    group.reset()
    reading = group.read()
    assert reading is not None
    assert (reading.counts, reading.enabled_ns) == ((0, 0), 2_000_000_000)
    group.close()
    assert not kernel.open_counters


def test_a_group_whose_second_event_is_refused_leaves_nothing_open() -> None:
    kernel = FakePerfKernel({(0, 0): 1.0})
    with pytest.raises(FileNotFoundError):
        Group(kernel, (CYCLES, INSTRUCTIONS), Target(cpu=0))
    assert not kernel.open_counters


def test_a_bank_reads_every_cpu_and_puts_events_in_order() -> None:
    kernel = FakePerfKernel(RATES)
    bank = bank_of(kernel)

    def backwards(members: list[Counter]) -> list[Counter]:
        return members[::-1]

    kernel.order = backwards
    kernel.advance(1)
    table = bank.read()
    assert (list(table.cpus), [list(column) for column in table.counts]) == ([0, 1], [[1000, 1000], [500, 500]])


def test_an_offline_cpu_costs_only_itself() -> None:
    kernel = FakePerfKernel(RATES)
    kernel.offline = {1}
    bank = bank_of(kernel)
    assert list(bank.cpus) == [0]
    assert bank.refusals[1].errno == errno.ENODEV
    kernel.offline = set()
    bank.follow((0, 1))
    assert list(bank.cpus) == [0, 1]
    assert not bank.refusals


def test_events_of_a_core_type_are_opened_on_its_cpus_only() -> None:
    """E09."""
    kernel = FakePerfKernel(RATES)
    bank = bank_of(kernel, EventSpec(name="cycles", type=0, config=0, cpus=(2, 3)), online=(0, 1, 2))
    assert bank.cpus == (2,)


def test_running_out_of_descriptors_closes_the_bank() -> None:
    """E06."""
    kernel = FakePerfKernel(RATES)
    kernel.most_open = 3
    with pytest.raises(OSError, match="Too many open files"):
        bank_of(kernel)
    assert not kernel.open_counters


def test_a_group_in_error_is_left_out_of_the_reading() -> None:
    kernel = FakePerfKernel(RATES)
    bank = bank_of(kernel)
    whole = kernel.read
    kernel.read = lambda fd, size: b"" if kernel.open_counters[fd].cpu == 0 else whole(fd, size)  # type: ignore[method-assign]
    assert list(bank.read().cpus) == [1]
    kernel.read = lambda fd, size: b""  # type: ignore[method-assign]
    assert list(bank.read().cpus) == []


# --- refusals -------------------------------------------------------------------------------------------------------------

ADMIN, PERFMON = 1 << 21, 1 << 38


@pytest.mark.parametrize(
    ("number", "level", "capabilities", "why", "words"),
    [
        (errno.EACCES, "2", 0, Why.FORBIDDEN, "perf_event_paranoid=2 forbids counting cycles.*grant CAP_PERFMON"),
        (errno.EACCES, "4", PERFMON, Why.FORBIDDEN, "paranoid=4.*though this process has CAP_PERFMON.*CAP_SYS_ADMIN"),
        (errno.EPERM, "2", ADMIN, Why.FORBIDDEN, "EPERM.*has CAP_SYS_ADMIN.*seccomp"),
        (errno.EPERM, "2", 0, Why.FORBIDDEN, "EPERM for cycles: a seccomp filter.*paranoid=2.*cap-add=PERFMON"),
        (errno.EPERM, "0", 0, Why.FORBIDDEN, "paranoid=0 would allow it.*seccomp"),
        (errno.EPERM, "2", PERFMON, Why.FORBIDDEN, "paranoid=2 would allow it.*podman: --cap-add=PERFMON,SYS_ADMIN"),
        (errno.EACCES, "", 0, Why.FORBIDDEN, r"paranoid=\? forbids"),
        (errno.ENOSYS, "2", ADMIN, Why.NO_SYSCALL, "ENOSYS.*seccomp.*CONFIG_PERF_EVENTS"),
        (errno.EMFILE, "2", ADMIN, Why.TOO_MANY_FILES, "EMFILE.*LimitNOFILE"),
        (errno.EBUSY, "2", ADMIN, Why.BUSY, "EBUSY.*other profiler"),
        (errno.ESRCH, "2", ADMIN, Why.GONE, "ended"),
        (errno.ENOENT, "2", ADMIN, Why.NOT_HERE, r"does not count cycles \(ENOENT\)"),
        (errno.EOPNOTSUPP, "2", ADMIN, Why.NOT_HERE, "does not count cycles"),
        (errno.ENXIO, "2", ADMIN, Why.NOT_HERE, "ENXIO"),
        (errno.ENODEV, "2", ADMIN, Why.NOT_HERE, "ENODEV"),
        (errno.EIO, "2", ADMIN, Why.OTHER, "Input/output error"),
    ],
)
def test_each_refusal_says_what_to_change(
    host_tree: HostTree, number: int, level: str, capabilities: int, why: Why, words: str
) -> None:
    """E06, E07, E08."""
    host_tree.write("proc/self/status", f"Name:\tx\nCapEff:\t{capabilities:016x}\n")
    if level:
        host_tree.write("proc/sys/kernel/perf_event_paranoid", level + "\n")
    refusal = refused(OSError(number, os.strerror(number)), ["cycles"], HostFiles(str(host_tree.root)))
    assert (refusal.why, refusal.errno) == (why, number)
    assert isinstance(refusal, SourceUnavailable)
    with pytest.raises(SourceUnavailable, match=words):
        raise refusal


def test_this_kernels_refusal_comes_as_an_oserror() -> None:
    """A type that no PMU has."""
    with pytest.raises(OSError) as caught:
        Group(KernelCalls(), [EventSpec(name="x", type=2**31 - 1, config=0)], Target(cpu=0))
    assert caught.value.errno in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOSYS)


# --- descriptors ------------------------------------------------------------------------------------------------------------


def test_the_soft_limit_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """E06: never above the hard limit, and what is then missing is missing from the answer."""
    limits = [1024, 4096]

    def set_limit(_what: int, new: tuple[int, int]) -> None:
        limits[:] = new

    monkeypatch.setattr(resource, "getrlimit", lambda _what: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    opened = len(os.listdir("/proc/self/fd"))
    assert room_for(100, reserved=256) >= 100
    assert limits == [1024, 4096], "there was room"
    assert room_for(2000, reserved=256) >= 2000
    assert 2256 <= limits[0] < 2356 + opened
    room = room_for(10_000, reserved=256)
    assert limits == [4096, 4096]
    assert 4096 - 256 - opened - 20 < room <= 4096 - 256


# --- cgroups ----------------------------------------------------------------------------------------------------------------


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).mkdir(parents=True, exist_ok=True)


def test_the_hierarchy_that_counters_follow_is_found(host_tree: HostTree) -> None:
    """Version 1 where it has the controller, else version 2, alone or beside version 1."""
    host = HostFiles(str(host_tree.root))
    with pytest.raises(SourceUnavailable, match="mount one"):
        perf_cgroup_root(host)
    host_tree.write("sys/fs/cgroup/unified/cgroup.controllers", "")
    assert perf_cgroup_root(host) == "sys/fs/cgroup/unified"
    host_tree.write("sys/fs/cgroup/cgroup.controllers", "")
    assert perf_cgroup_root(host) == "sys/fs/cgroup"
    host_tree.write("sys/fs/cgroup/perf_event/tasks", "")
    assert perf_cgroup_root(host) == "sys/fs/cgroup/perf_event"


def test_cgroups_are_found_by_path_and_pattern(host_tree: HostTree) -> None:
    root = host_tree.root / "cg"
    make(root, "a/x.service", "a/y.service", "a/z.scope", "b/x.service", "b/[odd]")
    host_tree.write("cg/a/file.service", "")
    host = HostFiles(str(host_tree.root))

    def find(*patterns: str) -> list[str]:
        return find_cgroups(host, "cg", patterns)

    assert find("/a/*.service") == ["/a/x.service", "/a/y.service"]
    assert find("/*/x.service", "a/x.service/") == ["/a/x.service", "/b/x.service"]
    assert find("/") == ["/"]
    assert find("/nothing", "/a/nothing*") == []
    assert find("/../cg/a", "/a/../b") == [], "nobody leaves the hierarchy"
    make(root, *(f"many/{number}" for number in range(MOST_CGROUPS + 5)))
    assert len(find("/many/*")) == MOST_CGROUPS
    fd = open_cgroup(host, "cg", "/a")
    assert os.fstat(fd).st_ino == os.stat(root / "a").st_ino
    os.close(fd)


def test_sockets_of_cpus_are_left_out_where_the_kernel_does_not_say(host_tree: HostTree) -> None:
    for cpu, socket in ((0, "0"), (1, "1"), (2, "-1")):
        host_tree.write(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", socket)
    assert sockets_of(HostFiles(str(host_tree.root)), range(4)) == {0: 0, 1: 1}


def test_half_a_host_is_not_counted() -> None:
    kernel = FakePerfKernel(RATES)
    kernel.refuse = lambda attr, cpu, cgroup: errno.EBUSY if cpu == 1 else 0
    with pytest.raises(OSError, match="busy"):
        bank_of(kernel)
    assert not kernel.open_counters
