"""What `dyno perf stat` prints."""

from collections.abc import Mapping, Sequence

import msgspec

from dynolog.cli.quantities import value
from dynolog.cli.table import table
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.one_off import EventCount
from dynolog.sources.perf_event.refusal import refused


class CountedEvent(msgspec.Struct, frozen=True):
    """One line: an event, on one core type where there are several, summed over all PMUs that it means.

    `count` is in `unit`; None when nothing was counted, and `note` says why. `running_ratio` is the share of time with a counter.
    """

    event: str
    count: float | None
    unit: str = ""
    core_type: str = ""
    running_ratio: float | None = None
    counters: int = 0
    note: str = ""


def merged(counts: Sequence[EventCount], host: HostFiles) -> list[CountedEvent]:
    """One line for each event and core type, in the order of the events."""
    lines: dict[tuple[str, str], list[EventCount]] = {}
    for count in counts:
        lines.setdefault((count.event.name, count.event.core_type), []).append(count)
    return [_line(members, host) for members in lines.values()]


def _line(members: Sequence[EventCount], host: HostFiles) -> CountedEvent:
    event = members[0].event
    known = [member.count for member in members if member.count is not None]
    # Half of the memory channels are not the memory's traffic.
    complete = len(known) == len(members) and not any(member.refusal for member in members)
    ratios = [member.running_ratio for member in members if member.running_ratio is not None]
    total = sum(known)
    return CountedEvent(
        event=event.name,
        count=(total if event.scale != 1.0 else round(total)) if complete else None,
        unit=event.unit,
        core_type=event.core_type,
        running_ratio=sum(ratios) / len(ratios) if ratios else None,
        counters=sum(member.targets for member in members),
        note=_note(members, host, complete=complete),
    )


def _note(members: Sequence[EventCount], host: HostFiles, *, complete: bool) -> str:
    for member in members:
        if member.refusal is not None:
            reason = refused(member.refusal, [member.event.name], host)
            return reason.reason + (f": {reason.remedy}" if reason.remedy else "")
    if not complete:
        return "no counter was free for it"
    return "user mode only" if members[0].user_mode_only else ""


def stat_table(events: Sequence[CountedEvent], elapsed_s: float, columns: int | None) -> str:
    """The lines, and how long it took."""
    by_name = {(event.event, event.core_type): event.count for event in events}
    rows = [
        (
            event.event + (f" ({event.core_type})" if event.core_type else ""),
            "-" if event.count is None else value(event.count) + (f" {event.unit}" if event.unit else ""),
            "-" if event.count is None else value(event.count / elapsed_s),
            "-" if event.running_ratio is None else f"{100 * event.running_ratio:.0f} %",
            event.note or _remark(event, by_name),
        )
        for event in events
    ]
    header = ("event", "count", "a second", "counted", "")
    return f"{table(header, rows, right=(1, 2, 3), columns=columns)}\n{elapsed_s:.3f} s"


def _remark(event: CountedEvent, counts: Mapping[tuple[str, str], float | None]) -> str:
    """A ratio that a person would work out anyway."""
    for name, whole, format_ratio in (
        ("instructions", "cycles", "{:.2f} in a cycle"),
        ("branch-misses", "branches", "{:.2%} of branches"),
        ("cache-misses", "cache-references", "{:.2%} of references"),
    ):
        of = counts.get((whole, event.core_type))
        if event.event == name and event.count is not None and of:
            return format_ratio.format(event.count / of)
    return ""
