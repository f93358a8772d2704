"""What a comparison shows that costs time."""

from collections.abc import Sequence

from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.job.comparing import Change, Comparison
from dynolog.analysis.rank.gpu_work import is_communication
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.wording import ms, pct, short

_LEAST_SHARE = 0.01  # of a step, or of the recording
_MOST_OF_A_KIND = 5
_SURE = frozenset({"certain", "likely"})
_COSTS = {"slower": "slower_{}", "new": "new_{}", "more calls": "more_calls_of_{}"}
_HOST_BOUND = 0.10
_ADVICE = "what changed: versions, shapes, precision, settings; clocks of the device (`dyno gpus`)"
_WAITING_ADVICE = (
    "whether a rank arrives later (analyse the traces of all ranks), or the network or the links are slower "
    "(`NCCL_DEBUG=INFO`)"
)


def comparison_findings(
    comparison: Comparison, ranks: Sequence[RankSummary], *, waits_explained: bool = False
) -> list[Finding]:
    """Kernels and operators that cost at least 1 % more and surely so; slower steps when none of them explains it.

    `waits_explained`: another finding says for whom ranks wait, so that collectives which last longer for it are none of their own.
    """
    unit_us = _unit_us(comparison, ranks)
    found = [
        _finding(change, comparison, unit_us, ranks)
        for rows in (comparison.kernels, comparison.operators if _host_matters(ranks) else [])
        for change in [
            row for row in rows if _costs(row, unit_us) and not (waits_explained and is_communication(row.name))
        ][:_MOST_OF_A_KIND]
    ]
    steps = comparison.steps
    if not found and steps is not None and steps.verdict == "slower" and steps.sure in _SURE:
        found.append(
            Finding(
                kind="slower_steps",
                title=f"Steps are slower: {ms(steps.before_us * 1000)} before, {ms(steps.after_us * 1000)} now ({steps.sure})",
                gain_ns=steps.change_us * 1000,
                per="step",
                share=steps.change_us / steps.after_us,
                ranks=[],
                evidence=[
                    "no kernel or operator alone explains it: look at idle times and communication of both recordings"
                ],
                advice=["`dyno analyze` each recording on its own, and compare their time splits"],
            )
        )
    return found


def _unit_us(comparison: Comparison, ranks: Sequence[RankSummary]) -> float:
    if comparison.unit == "step" and comparison.steps is not None:
        return max(comparison.steps.after_us, 1e-9)
    return 1e6 if any(rank.span_ns for rank in ranks) else 1e9


def _host_matters(ranks: Sequence[RankSummary]) -> bool:
    """Whether a slower operator of the host costs time: without a device, or when the device waits for the host."""
    shares = [
        (rank.main.split.idle.launch_ns + rank.main.split.idle.cpu_ns) / max(rank.main.split.span_ns, 1)
        for rank in ranks
        if rank.main is not None
    ]
    return not shares or max(shares) >= _HOST_BOUND


def _costs(change: Change, unit_us: float) -> bool:
    return change.verdict in _COSTS and change.sure in _SURE and change.change_us >= _LEAST_SHARE * unit_us


def _finding(change: Change, comparison: Comparison, unit_us: float, ranks: Sequence[RankSummary]) -> Finding:
    unit = comparison.unit
    words = {
        "slower": f"{change.mean_ratio or 1:.2f} × as long a call",
        "new": "new",
        "more calls": f"{change.after_calls:.1f} calls a {unit} instead of {change.before_calls:.1f}",
    }[change.verdict]
    evidence = [
        (
            f"{ms(change.before_us * 1000)} a {unit} before, {ms(change.after_us * 1000)} now; "
            f"calls a {unit}: {change.before_calls:.1f}, {change.after_calls:.1f}"
        )
    ]
    if change.effect is not None and change.verdict == "slower":
        evidence.append(f"a call now lasts longer than one before with a probability of {pct(change.effect)}")
    advice = _ADVICE
    if is_communication(change.name):
        evidence.append("its time includes waiting for other ranks")
        advice = _WAITING_ADVICE
    gone = [row for row in comparison.kernels if row.verdict == "gone"] if change.verdict == "new" else []
    evidence += [f"gone instead: {short(row.name)}, {ms(row.before_us * 1000)} a {unit}" for row in gone[:2]]
    return Finding(
        kind=_COSTS[change.verdict].format(change.what),
        title=f"{change.what.capitalize()} {short(change.name, 50)}: {words}, {ms(change.change_us * 1000)} more a {unit} ({change.sure})",
        gain_ns=change.change_us * 1000,
        per=unit,
        share=change.change_us / unit_us,
        ranks=[rank.rank for rank in ranks],
        evidence=evidence,
        advice=[advice],
    )
