"""dyno perf list: what this machine can count, what each metric set needs, and what is missing and why."""

import argparse
from functools import partial

import msgspec

from dynolog.cli.exit_codes import DONE, CommandError
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import table, terminal_columns
from dynolog.collectors.perf_counting import Counting
from dynolog.collectors.perf_plan import COUNTERS, Plan, groups_of, make_plan
from dynolog.collectors.perf_sets import SETS
from dynolog.sources.cpu_ids import cpu_ids
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.syscall import KernelCalls, PerfCalls
from dynolog.sources.pmu_devices import PmuDevice, PmuDevices, discover
from dynolog.sources.pmu_events import parse_event
from dynolog.sources.pmu_names import CACHE, HARDWARE, SOFTWARE
from dynolog.sources.pmu_tables import PmuTable, table_of

_NO_WATCHDOG = "0"


class SetState(msgspec.Struct, frozen=True):
    """A metric set: the events that it needs here, and why those that are missing are."""

    name: str
    summary: str
    state: str  # yes, partly, no
    events: list[str]
    missing: list[str]
    unverified: list[str]


class PmuState(msgspec.Struct, frozen=True):
    """PMUs of one family: what they are, how many, and how many events the kernel names."""

    name: str
    kind: str
    instances: int
    events: int


class NamedEventState(msgspec.Struct, frozen=True):
    """An event that can be given to `-e`, where its name is from, and whether its number was found in two places."""

    event: str
    origin: str
    description: str = ""
    unverified: bool = False


class ListReply(msgspec.Struct, frozen=True):
    """What --json prints."""

    processor: str
    sets: list[SetState]
    pmus: list[PmuState]
    unusable: dict[str, str]
    events: list[NamedEventState]


def show(arguments: argparse.Namespace) -> int:
    """Print it; with a text, the events that contain it."""
    host = HostFiles()
    devices, processor = discover(host), table_of(host)
    events = [event for event in named_events(devices, processor) if arguments.filter.lower() in event.event.lower()]
    if arguments.filter and not events:
        raise CommandError(f"no event like {arguments.filter!r} on this machine: `dyno perf list` has all of them")
    sets = [] if arguments.filter else set_states(devices, processor, KernelCalls())
    reply = ListReply(processor.name, sets, pmu_states(devices), devices.unusable, events)
    if arguments.json:
        print_json(reply)
    else:
        print(_text(reply, everything=not arguments.filter, columns=terminal_columns()))
    return DONE


def set_states(devices: PmuDevices, processor: PmuTable, calls: PerfCalls) -> list[SetState]:
    """Each metric set, tried on one CPU: what the kernel would refuse is seen only when it is asked."""
    parse = partial(parse_event, devices=devices, named=processor.named)
    watchdog = devices.host.read_text("proc/sys/kernel/nmi_watchdog") or _NO_WATCHDOG
    counters = COUNTERS - (watchdog == "1")
    unverified = {entry.event: name for name, entry in processor.events.items() if not entry.verified}
    states = []
    for one in SETS:
        plan = make_plan(groups_of([one.name], devices), parse, counters)
        events, refusals = _try(plan, devices, calls)
        missing = [f"{group}: {reason}" for group, reason in (dict(plan.problems) | refusals).items()]
        state = "no" if not events else "partly" if missing else "yes"
        doubtful = [event for event in events if event in unverified or event in unverified.values()]
        states.append(SetState(one.name, one.summary, state, events, missing, doubtful))
    return states


def _try(plan: Plan, devices: PmuDevices, calls: PerfCalls) -> tuple[list[str], dict[str, str]]:
    """The events of the groups that open on one CPU of each PMU, and the reasons of those that do not."""
    counting = Counting(calls, devices.host)
    try:
        counting.follow(plan, _one_cpu_each(plan, devices))
        opened = [event.name for read in counting.read().reads for bank in read.group.banks for event in bank.events]
        refusals = {group: f"{refusal.reason}" for group, refusal in counting.refusals.items()}
    finally:
        counting.close()
    return list(dict.fromkeys(opened)), refusals


def _one_cpu_each(plan: Plan, devices: PmuDevices) -> tuple[int, ...]:
    online = cpu_ids(devices.host)
    cpus = set(online[:1])
    for planned in plan.planned:
        allowed = planned.options[0].events[0].cpus
        cpus.update([cpu for cpu in online if allowed is None or cpu in allowed][:1])
    return tuple(sorted(cpus))


def pmu_states(devices: PmuDevices) -> list[PmuState]:
    """PMUs by family; those that are only parts of the kernel last."""
    families: dict[str, list[PmuDevice]] = {}
    for device in devices.matching(lambda _device: True):
        families.setdefault(device.family, []).append(device)
    states = [
        PmuState(name, _kind(members[0]), len(members), len(members[0].events)) for name, members in families.items()
    ]
    return sorted(states, key=lambda state: ("cores", "outside the cores", "kernel").index(state.kind))


def _kind(device: PmuDevice) -> str:
    if device.is_core:
        return "cores"
    return "kernel" if device.cpumask is None and not device.events else "outside the cores"


def named_events(devices: PmuDevices, processor: PmuTable) -> list[NamedEventState]:
    """Every name that `-e` takes here, but for tracepoints."""
    events = [NamedEventState(name, "kernel") for name in SOFTWARE]
    if devices.cores:
        events += [NamedEventState(name, "every processor, where it has it") for name in (*HARDWARE, *CACHE)]
    families: dict[str, PmuDevice] = {}
    for device in devices.matching(lambda _device: True):
        families.setdefault(device.family, device)
    for family, device in families.items():
        name = device.name if device.name in devices.devices and len(devices.instances(family)) < 2 else family
        events += [NamedEventState(f"{name}/{event}/", "sysfs") for event in device.events]
    events += [
        NamedEventState(name, f"{processor.name}: {'; '.join(entry.sources)}", entry.description, not entry.verified)
        for name, entry in processor.events.items()
        if devices.instances(pmu := entry.event.partition("/")[0]) or (pmu == "cpu" and devices.cores)
    ]
    return events


def _text(reply: ListReply, *, everything: bool, columns: int | None) -> str:
    parts = []
    if everything:
        parts.append(f"Processor: {reply.processor or 'none that has a table here; what the kernel names works'}")
        rows = [(one.name, one.state, _needs(one)) for one in reply.sets]
        parts.append(table(("metric set", "here", "events, and what is missing"), rows, columns=columns))
        pmus = [(pmu.name, pmu.kind, str(pmu.instances), str(pmu.events)) for pmu in reply.pmus]
        parts.append(table(("PMU", "counts", "instances", "events"), pmus, right=(2, 3), columns=columns))
        if reply.unusable:
            parts.append("\n".join(f"{name} is left out: {why}" for name, why in sorted(reply.unusable.items())))
    events = reply.events if not everything else [event for event in reply.events if event.description]
    rows = [
        (
            event.event,
            " ".join(filter(None, (event.description, "unverified" if event.unverified else ""))),
            event.origin,
        )
        for event in events
    ]
    if rows:
        parts.append(table(("event", "", "named by"), rows, columns=columns))
    if everything:
        parts.append("`dyno perf list TEXT` prints the events whose names contain TEXT; tracepoints are category:name.")
    return "\n\n".join(parts)


def _needs(one: SetState) -> str:
    events = ", ".join(one.events)
    if one.unverified:
        events += " (unverified: " + ", ".join(one.unverified) + ")"
    return "; ".join(filter(None, (events, *one.missing)))
