"""Ranks and hosts that all others wait for, and what they do differently."""

import statistics
from collections.abc import Sequence

from dynolog.analysis.findings.concerned import job_gain
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.job.job_summary import JobSummary
from dynolog.analysis.rank.gpu_work import is_communication
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.wording import ms, pct, rank_list, short

SLOW = frozenset({"slow_rank", "slow_host"})
WAITING = SLOW | {"imbalance"}
_LEAST_SHARE = 0.05  # of the recording
_MAINLY = 0.6  # of all waiting for single ranks
_OF_WAITING = 0.5  # of what the others wait in all
_HARDLY = 0.25  # of what ranks usually wait
_MORE = 1.05
_RANK_ADVICE = [
    "if it computes longer at the same work: its clocks, heat, power and ECC (`dyno gpus`), then move the job off it",
    "if it has more work: balance the data; if its host is late: what else runs there (`dyno status`, `dyno watch`)",
]


def slow_findings(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    """At most one: a rank, else a host, else some ranks that hardly wait while the others do."""
    if not job.compared_ns:
        return []
    kept = sum(wait.kept_waiting_ns for wait in job.waits)
    worst = max(job.waits, key=lambda wait: wait.kept_waiting_ns, default=None)
    host = _slow_host(job, ranks)
    if host is not None and (worst is None or host.share * job.compared_ns > worst.kept_waiting_ns * 1.1):
        return [host]
    if worst is None:
        return []
    share = worst.kept_waiting_ns / job.compared_ns
    others = [wait.waited_ns for wait in job.waits if wait.collectives and wait.rank != worst.rank]
    alone = worst.kept_waiting_ns >= _OF_WAITING * statistics.mean(others or [0])
    if share >= _LEAST_SHARE and worst.kept_waiting_ns >= _MAINLY * kept and alone:
        last = [f"last to arrive in {worst.last} of {worst.collectives} collectives"]
        return [_slow(job, ranks, [worst.rank], share, last)]
    return _some_ranks(job, ranks)


def _some_ranks(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    """Ranks that hardly wait while most others do: several that are slow alike, or one that only its neighbours wait for, for whom
    then the others do."""
    waited = {wait.rank: wait.waited_ns for wait in job.waits if wait.collectives}
    if len(waited) < 3:
        return []
    usual = statistics.median(waited.values())
    few = sorted(rank for rank, time_ns in waited.items() if time_ns <= _HARDLY * usual)
    if not few or 2 * len(few) >= len(waited):
        return []
    least_ns = statistics.mean(waited[rank] for rank in few)
    most_ns = statistics.mean(time_ns for rank, time_ns in waited.items() if rank not in few)
    share = (most_ns - least_ns) / job.compared_ns
    if share < _LEAST_SHARE:
        return []
    evidence = [f"{rank_list(few)} wait{'s' * (len(few) == 1)} {ms(least_ns)} in collectives, the others {ms(most_ns)}"]
    return [_slow(job, ranks, few, share, evidence)]


def _slow(job: JobSummary, ranks: Sequence[RankSummary], slow: list[int], share: float, evidence: list[str]) -> Finding:
    value, per = job_gain(ranks, share)
    hosts = sorted({rank.host for rank in ranks if rank.rank in slow and rank.host})
    where = f" on {hosts[0]}" if len(hosts) == 1 else ""
    verb, them = ("is", "it") if len(slow) == 1 else ("are", "them")
    title = f"{rank_list(slow).capitalize()}{where} {verb} slow: all others wait for {them} {pct(share)} of the time"
    return Finding(
        kind="slow_rank",
        title=title,
        gain_ns=value,
        per=per,
        share=share,
        ranks=slow,
        evidence=evidence + _by_step(job, slow) + _differences(slow, ranks),
        advice=list(_RANK_ADVICE),
    )


def _slow_host(job: JobSummary, ranks: Sequence[RankSummary]) -> Finding | None:
    several = [host for host in job.hosts if len(host.ranks) > 1]
    kept = sum(host.kept_waiting_ns for host in job.hosts)
    worst = max(several, key=lambda host: host.kept_waiting_ns, default=None)
    if worst is None or worst.kept_waiting_ns < _MAINLY * kept:
        return None
    share = worst.kept_waiting_ns / job.compared_ns
    if share < _LEAST_SHARE:
        return None
    value, per = job_gain(ranks, share)
    return Finding(
        kind="slow_host",
        title=f"Host {worst.host} is slow: all other hosts wait for its ranks {pct(share)} of the time",
        gain_ns=value,
        per=per,
        share=share,
        ranks=worst.ranks,
        evidence=[
            f"{rank_list(worst.ranks)} arrive last in collectives, one or the other",
            *_differences(worst.ranks, ranks),
        ],
        advice=["look at the host: other processes, clocks, memory, its network (`dyno status`, `dyno watch`)"],
    )


def _by_step(job: JobSummary, slow: list[int]) -> list[str]:
    steps = [step for step in job.slowest if step.rank in slow]
    if not steps:
        return []
    mean = statistics.mean(step.kept_waiting_ns for step in steps)
    return [f"slowest in {len(steps)} of {len(job.slowest)} steps, by {ms(mean)} on average"]


def _differences(slow: Sequence[int], ranks: Sequence[RankSummary]) -> list[str]:
    """What the slow ranks do longer than the others, by medians."""
    they = [rank for rank in ranks if rank.rank in slow]
    others = [rank for rank in ranks if rank.rank not in slow]
    return _longer_kernels(they, others) + _longer_host(they, others) if they and others else []


def _longer_kernels(slow: Sequence[RankSummary], others: Sequence[RankSummary]) -> list[str]:
    own, theirs = ([rank.main.split.compute_ns for rank in side if rank.main] for side in (slow, others))
    if not own or not theirs:
        return []
    who, whose = ("it computes", "its host is") if len(slow) == 1 else ("they compute", "their hosts are")
    computed, usual = statistics.median(own), statistics.median(theirs)
    if computed < _MORE * usual:
        return [f"{who} no longer than the others ({ms(computed)}, the others {ms(usual)}): {whose} late"]
    times, usual_times = (
        [{row.name: row.total_us for row in rank.kernels if not is_communication(row.name)} for rank in side]
        for side in (slow, others)
    )
    return [f"{who} {ms(computed)}, the others {ms(usual)}", *_most_longer(times, usual_times)]


def _longer_host(slow: Sequence[RankSummary], others: Sequence[RankSummary]) -> list[str]:
    """For traces of the CPU alone."""
    if any(rank.main is not None for rank in slow):
        return []
    times, usual_times = (
        [{row.name: row.self_us for row in rank.operators} for rank in side] for side in (slow, others)
    )
    own, usual = (1000 * statistics.median(sum(table.values()) for table in side) for side in (times, usual_times))
    whose, who = ("its", "it is") if len(slow) == 1 else ("their", "they are")
    if own < _MORE * usual:
        return [
            (
                f"{whose} operators take no longer than those of the others ({ms(own)}, the others {ms(usual)}): {who} late outside of "
                "them, in Python itself or waiting"
            )
        ]
    return [
        f"{whose} operators take {ms(own)} of the host, those of the others {ms(usual)}",
        *_most_longer(times, usual_times),
    ]


def _most_longer(times: Sequence[dict[str, float]], usual_times: Sequence[dict[str, float]]) -> list[str]:
    """The two names that take most more time on the slow ranks, in tables of µs by rank."""
    names = {name for table in times for name in table}
    excess_us = {name: _usual_us(times, name) - _usual_us(usual_times, name) for name in names}
    longer = sorted((name for name in excess_us if excess_us[name] > 0), key=lambda name: -excess_us[name])[:2]
    return [f"{short(name)}: {ms(excess_us[name] * 1000)} more than on the others" for name in longer]


def _usual_us(tables: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(table.get(name, 0.0) for table in tables)
