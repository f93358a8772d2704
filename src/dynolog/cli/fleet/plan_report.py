"""What phase one of a trace of many hosts found, in lines."""

from collections.abc import Iterator, Sequence

from dynolog.cli.fleet.by_reason import lines_by_reason
from dynolog.cli.quantities import count, duration, processes
from dynolog.cli.table import table, terminal_columns
from dynolog.fleet.clocks import ClockOffset
from dynolog.fleet.host_fold import folded
from dynolog.fleet.manifest import HostEntry, Manifest
from dynolog.fleet.plan import EXPECTED, Plan
from dynolog.fleet.survey import Candidate, Survey

# With more, no table: nobody reads 2,000 lines.
MOST_HOSTS = 64
_MOST_CLOCKS = 8


def plan_lines(plan: Plan, manifest: Manifest) -> Iterator[str]:
    """A table of hosts, the sum, and what is worth a word; of very many hosts only the words, by what is said."""
    rows = []
    known_gpus = any(one.trainer.gpus for chosen in plan.chosen for one in chosen)
    if len(plan.surveys) > MOST_HOSTS:
        yield from _grouped(plan, manifest)
        return
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
    yield from table(header, rows, right=right, columns=terminal_columns()).splitlines()
    yield from _warnings(plan)
    yield _sum(plan)


def _grouped(plan: Plan, manifest: Manifest) -> Iterator[str]:
    """Who gave no answer is said elsewhere."""
    pairs = enumerate(zip(plan.surveys, manifest.hosts, strict=True))
    remarks = [
        (host.label, _remark(survey, host, starts=plan.starts(index)))
        for index, (survey, host) in pairs
        if host.outcome == "answered"
    ]
    yield from lines_by_reason((label, remark) for label, remark in remarks if remark)
    yield from _warnings(plan)
    yield _sum(plan)


def _warnings(plan: Plan) -> Iterator[str]:
    """What the daemons warn of before they trace."""
    said = [(survey.target.name, warning) for survey in plan.starting for warning in survey.warnings]
    for line in lines_by_reason(said):
        yield f"warning: {line}"


def _sum(plan: Plan) -> str:
    return f"{processes(plan.process_count)} on {count(len(plan.starting), 'host')} to trace"


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
    offsets = [(host.label, offset_of(host)) for host in manifest.hosts]
    off = [(label, offset) for label, offset in offsets if offset is not None and offset.is_off]
    if len(off) > _MOST_CLOCKS:
        yield (f"warning: {clocks_off(off)}: their starts were corrected, the times in their traces are their own")
        return
    for label, offset in off:
        off_s = offset.offset_ns / 1e9
        yield f"warning: the clock of {label} is {off_s:+.2f} s off: its start was corrected, the times in its trace are its own"


def clocks_off(off: Sequence[tuple[str, ClockOffset]]) -> str:
    """`the clocks of 12 hosts are off, by -0.31 to +2.00 s: gpu[001-012]`."""
    seconds = [offset.offset_ns / 1e9 for _, offset in off]
    names = folded([label for label, _ in off])
    if len(off) == 1:
        return f"the clock of {names} is {seconds[0]:+.2f} s off"
    return f"the clocks of {len(off):,} hosts are off, by {min(seconds):+.2f} to {max(seconds):+.2f} s: {names}"


def offset_of(host: HostEntry) -> ClockOffset | None:
    """Its clock against ours."""
    if host.clock_offset_ns is None or host.clock_uncertainty_ns is None:
        return None
    return ClockOffset(offset_ns=host.clock_offset_ns, uncertainty_ns=host.clock_uncertainty_ns)
