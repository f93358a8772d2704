"""What phase one of a trace of many hosts found, in lines."""

from collections.abc import Iterator, Sequence

from dynolog.cli.quantities import count, duration, processes
from dynolog.cli.table import table, terminal_columns
from dynolog.fleet.clocks import ClockOffset
from dynolog.fleet.manifest import HostEntry, Manifest
from dynolog.fleet.plan import EXPECTED, Plan
from dynolog.fleet.survey import Candidate, Survey

_MOST_HOSTS = 64


def plan_lines(plan: Plan, manifest: Manifest) -> Iterator[str]:
    """A table of hosts, the sum, and what is worth a word."""
    rows = []
    known_gpus = any(one.trainer.gpus for chosen in plan.chosen for one in chosen)
    for index, (survey, host) in enumerate(zip(plan.surveys, manifest.hosts, strict=True)):
        chosen = plan.chosen[index]
        ranks = sorted(one.trainer.rank for one in chosen if one.trainer.rank is not None)
        rows.append(
            (
                host.label,
                "?" if survey.original else str(host.matched),
                "?" if plan.starts(index) and survey.original else str(len(chosen)),
                _ranges(ranks) or "-",
                *([_gpus(chosen)] if known_gpus else []),
                str(survey.offset) if survey.offset else "-",
                duration(host.slowest_poll_s) if host.slowest_poll_s else "-",
                _remark(survey, host, starts=plan.starts(index)),
            )
        )
    gpus = ("GPUS",) if known_gpus else ()
    header = ("HOST", "MATCHED", "TRACED", "RANKS", *gpus, "CLOCK", "POLLS EVERY", "REMARK")
    right = (1, 2, *(place + len(gpus) for place in (4, 5)))
    shown = rows if len(rows) <= _MOST_HOSTS else [row for row in rows if row[-1]][:_MOST_HOSTS]
    yield from table(header, shown, right=right, columns=terminal_columns()).splitlines()
    if len(shown) < len(rows):
        yield f"... and {len(rows) - len(shown):,} more hosts"
    yield f"{processes(plan.process_count)} on {count(len(plan.starting), 'host')} to trace"


def _remark(survey: Survey, host: HostEntry, *, starts: bool) -> str:
    if host.outcome != "answered":
        return str(host.outcome)
    if host.original:
        return "original C++ dynolog: " + ("traced without being followed" if starts else "left out")
    left_out = [entry.error for entry in survey.not_traced if entry.code not in EXPECTED]
    if left_out:
        return f"{processes(len(left_out))} left out: {left_out[0]}"
    return "" if starts else survey.reason or "none of its processes was chosen"


def _gpus(chosen: Sequence[Candidate]) -> str:
    """All that they hold: `0-3,8`, MIG instances (`0/gi1`) behind whole devices."""
    held = {gpu for candidate in chosen for gpu in candidate.trainer.gpus}
    whole = _ranges(sorted(int(gpu) for gpu in held if gpu.isdecimal()))
    parts = sorted(gpu for gpu in held if not gpu.isdecimal())
    return ",".join([whole] * bool(whole) + parts) or "-"


def _ranges(numbers: list[int]) -> str:
    """`0-3,8`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def offsets_lines(manifest: Manifest, ahead_s: float) -> Iterator[str]:
    """When it begins, and whose clock is off."""
    yield f"Recording begins everywhere in {ahead_s:.1f} s, at {manifest.start_wall_ns // 1_000_000} (Unix ms)"
    for host in manifest.hosts:
        offset = offset_of(host)
        if offset is not None and offset.is_off:
            off_s = offset.offset_ns / 1e9
            yield f"warning: the clock of {host.label} is {off_s:+.2f} s off: its start was corrected, the times in its trace are its own"


def offset_of(host: HostEntry) -> ClockOffset | None:
    """Its clock against ours."""
    if host.clock_offset_ns is None or host.clock_uncertainty_ns is None:
        return None
    return ClockOffset(offset_ns=host.clock_offset_ns, uncertainty_ns=host.clock_uncertainty_ns)
