"""dyno perf stat: count events once, here and now."""

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

import msgspec

from dynolog.cli.exit_codes import DONE, FAILED, CommandError
from dynolog.cli.perf.table import CountedEvent, merged, stat_table
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import terminal_columns
from dynolog.sources.cpu_ids import cpu_ids
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_cgroups import perf_cgroup_root
from dynolog.sources.perf_event.attributes import EventSpec
from dynolog.sources.perf_event.descriptors import room_for
from dynolog.sources.perf_event.group import Target
from dynolog.sources.perf_event.one_off import EventCount, OneOff
from dynolog.sources.perf_event.syscall import KernelCalls
from dynolog.sources.pmu_devices import PmuDevices, discover
from dynolog.sources.pmu_events import parse_event, split_events
from dynolog.sources.pmu_tables import table_of
from dynolog.sources.topology import parse_cpu_list

_HARDWARE = ("cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses")
_SOFTWARE = ("task-clock", "context-switches", "cpu-migrations", "page-faults")
_OWN_FILES = 16

TargetsOf = Callable[[EventSpec], Sequence[Target]]


class StatReply(msgspec.Struct, frozen=True):
    """What --json prints."""

    elapsed_s: float
    events: list[CountedEvent]


def count(arguments: argparse.Namespace) -> int:
    """Count, print, and fail when nothing could be counted."""
    host = HostFiles()
    devices = discover(host)
    specs = _events(arguments.events, devices)
    with _where(arguments, host) as targets_of:
        counts, elapsed_s = _count_once(specs, targets_of, arguments)
    events = merged(counts, host)
    if arguments.json:
        print_json(StatReply(elapsed_s, events))
    else:
        print(stat_table(events, elapsed_s, terminal_columns()))
    arguments.printed = True
    return DONE if any(event.count is not None for event in events) else FAILED


def _events(text: str, devices: PmuDevices) -> list[EventSpec]:
    named = table_of(devices.host).named
    words = split_events(text) or [*_SOFTWARE, *(_HARDWARE if devices.cores else ())]
    return [spec for word in words for spec in parse_event(word, devices, named)]


def _count_once(
    specs: Sequence[EventSpec], targets_of: TargetsOf, arguments: argparse.Namespace
) -> tuple[list[EventCount], float]:
    import time  # noqa: PLC0415 - nothing else of dyno's parser needs it

    need = sum(len(targets_of(spec)) for spec in specs)
    if need > (room := room_for(need, _OWN_FILES)):
        raise CommandError(f"{need} counters are needed and {room} files may be opened: raise ulimit -n, or count less")
    counters = OneOff(KernelCalls(), specs, targets_of)
    try:
        started_ns = time.monotonic_ns()
        counters.start()
        # Ctrl-C ends the counting, not the command.
        if counters.is_counting:
            with contextlib.suppress(KeyboardInterrupt):
                _wait(arguments.pids, arguments.duration)
        counts = counters.stop()
        return counts, (time.monotonic_ns() - started_ns) / 1e9
    except OSError as error:
        raise CommandError(f"the counters cannot be read: {error.strerror or error}") from error
    finally:
        counters.close()


def _wait(pids: Sequence[int], duration_s: float) -> None:
    """Until the time is over, or all processes have ended."""
    import select  # noqa: PLC0415 - as above
    import time  # noqa: PLC0415

    deadline = time.monotonic() + duration_s
    poll = select.poll()
    waiting: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(pid)
            poll.register(fd, select.POLLIN)
            waiting.add(fd)
    while (left_s := deadline - time.monotonic()) > 0 and (waiting or not pids):
        for fd, _ in poll.poll(left_s * 1000):
            poll.unregister(fd)
            os.close(fd)
            waiting.discard(fd)
    for fd in waiting:
        os.close(fd)


@contextlib.contextmanager
def _where(arguments: argparse.Namespace, host: HostFiles) -> Iterator[TargetsOf]:
    """The targets of an event, by --pids, --cgroup or --cpus; a cgroup's directory is open meanwhile."""
    online = cpu_ids(host)
    if arguments.pids:
        threads = _threads(arguments.pids)
        yield lambda _event: [Target(pid=tid, inherit=True) for tid in threads]
    elif arguments.cgroup:
        fd = _open_cgroup(arguments.cgroup, host)
        try:
            yield lambda event: [Target(cpu=cpu, cgroup_fd=fd) for cpu in _cpus_of(event, online)]
        finally:
            os.close(fd)
    else:
        chosen = _chosen_cpus(arguments.cpus, online)
        yield lambda event: [Target(cpu=cpu) for cpu in _cpus_of(event, chosen)]


def _cpus_of(event: EventSpec, cpus: Sequence[int]) -> list[int]:
    return [cpu for cpu in cpus if event.cpus is None or cpu in event.cpus]


def _threads(pids: Sequence[int]) -> list[int]:
    """Every thread that the processes have now; those that they start later are counted with them."""
    threads: list[int] = []
    for pid in pids:
        try:
            threads += [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            raise CommandError(f"there is no process {pid}") from None
    return threads


def _open_cgroup(path: str, host: HostFiles) -> int:
    root = perf_cgroup_root(host)
    directory = host.path(f"{root}/{path.strip('/')}")
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandError(f"cgroup {path!r} cannot be opened below /{root}: {error.strerror}") from None


def _chosen_cpus(text: str, online: Sequence[int]) -> Sequence[int]:
    if not text:
        return online
    try:
        wanted = parse_cpu_list(text)
    except ValueError:
        raise CommandError(f"{text!r} is no list of CPUs such as 0-3,8") from None
    if missing := sorted(set(wanted).difference(online)):
        raise CommandError(f"CPU {missing[0]} is not online")
    return wanted
