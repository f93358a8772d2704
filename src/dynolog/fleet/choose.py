"""Which of the processes that could be traced are: all, one a host, or a sample spread over the hosts."""

from collections.abc import Sequence

from dynolog.fleet.survey import Candidate

PerHost = Sequence[Sequence[Candidate]]


def one_per_host(candidates: PerHost) -> list[list[Candidate]]:
    """Of each host the process of lowest rank."""
    return [sorted(of_host, key=by_rank)[:1] for of_host in candidates]


def sample(candidates: PerHost, count: int) -> list[list[Candidate]]:
    """`count` processes: as many hosts as possible, evenly spaced when they are more than that, then second processes, and so on."""
    chosen: list[list[Candidate]] = [[] for _ in candidates]
    ordered = [sorted(of_host, key=by_rank) for of_host in candidates]
    left, turn = count, 0
    while left > 0 and (hosts := [index for index, of_host in enumerate(ordered) if len(of_host) > turn]):
        taken = hosts if len(hosts) <= left else [hosts[place * len(hosts) // left] for place in range(left)]
        for index in taken:
            chosen[index].append(ordered[index][turn])
        left -= len(taken)
        turn += 1
    return chosen


def by_rank(candidate: Candidate) -> tuple[bool, int, int]:
    """In the order of ranks; those without one last, as they were started."""
    trainer = candidate.trainer
    return trainer.rank is None, trainer.rank or 0, trainer.host_pid or trainer.pid
