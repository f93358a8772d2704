"""Which trainers a request means, which of them are traced, and why the others are not."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from dynolog.model.trace_request import NotTraced, TraceRequest
from dynolog.profiling.gpu_holdings import GpuHoldings
from dynolog.profiling.job import JobSelector
from dynolog.profiling.roles import Roles, roles_of
from dynolog.profiling.trainer import Trainer

_INIT = 1


class Selection(msgspec.Struct):
    """The outcome of matching. `matched` are meant by the request, `chosen` are to be traced, `left_out` says why each other is not.

    `in_job`, `by_pid` and `by_name` count what was left after those filters, for explaining an empty match; `busy` counts busy ones.
    `guessed` are left out as launchers only because they started others: a new look may show that they work.
    """

    matched: list[Trainer] = []
    chosen: list[Trainer] = []
    left_out: list[NotTraced] = []
    in_job: int = 0
    by_pid: int = 0
    by_name: int = 0
    forbidden: int = 0
    ambiguous: int = 0
    busy: int = 0
    guessed: list[Trainer] = []

    def leave_out(self, trainer: Trainer, code: str, error: str) -> None:
        """Say why a matched trainer is not traced."""
        self.left_out.append(NotTraced(pid=trainer.pid, host_pid=trainer.host_pid, code=code, error=error))


def select(
    trainers: Iterable[Trainer],
    request: TraceRequest,
    job: JobSelector,
    may_trace: Callable[[Trainer], bool],
    describe_busy: Callable[[Trainer], str | None],
    *,
    gpus: GpuHoldings,
) -> Selection:
    """Match `request` on all trainers. `describe_busy` says what a trainer is busy with, None when it can take a config."""
    found = Selection()
    in_job = [trainer for trainer in trainers if job.matches(trainer.job)]
    in_job.sort(key=lambda trainer: trainer.host_pid)  # as they were started, which is the order of their ranks
    found.in_job = len(in_job)
    meant = _by_pids(in_job, request.pids, found)
    found.by_pid = len(meant)
    meant = [trainer for trainer in meant if _fits_name_and_rank(trainer, request)]
    found.by_name = len(meant)
    meant = [trainer for trainer in meant if _holds_one_of(trainer, request, gpus)]
    allowed = []
    for trainer in meant:
        if may_trace(trainer):
            allowed.append(trainer)
            continue
        found.forbidden += 1
        if wanted_pids(request.pids):  # who asked for all of a job did not mean those of others
            found.leave_out(
                trainer, "forbidden", f"it belongs to uid {trainer.uid}: only that user, root or a token may trace it"
            )
    found.matched = allowed
    roles = roles_of(allowed, gpus.strength)
    free = _free(_workers(allowed, request, roles, found), describe_busy, found)
    found.chosen = _within_limit(free, request.process_limit, lambda one: _preference(one, roles, gpus), found)
    return found


# --- pids --------------------------------------------------------------------------------------------------------------


def wanted_pids(request_pids: Sequence[int]) -> frozenset[int]:
    """The pids a request names; empty when it means every process of the job ([] or [0])."""
    return frozenset() if tuple(request_pids) in ((), (0,)) else frozenset(request_pids)


def _by_pids(trainers: list[Trainer], request_pids: Sequence[int], found: Selection) -> list[Trainer]:
    pids = wanted_pids(request_pids)
    if not pids:
        return trainers
    index = _PidIndex(trainers)
    chosen: set[int] = set()
    for pid in sorted(pids):
        groups = index.groups(pid)
        if len(groups) > 1:
            _say_ambiguous(pid, groups, found)
        elif groups:
            chosen.update(trainer.serial for trainer in groups[0])
    return [trainer for trainer in trainers if trainer.serial in chosen]


class _PidIndex:
    """Which trainers a pid may mean.

    Every number of a verified trainer is the kernel's, never its own claim, so that nobody can claim to be another's process;
    claims count for unverified ones alone, and only when nothing else fits.
    """

    def __init__(self, trainers: Iterable[Trainer]) -> None:
        self._own: dict[int, Trainer] = {}
        self._below: dict[int, list[Trainer]] = {}
        self._inside: dict[int, dict[int, list[Trainer]]] = {}  # pid inside → namespace → trainers
        self._claimed: dict[int, list[Trainer]] = {}
        for trainer in trainers:
            if trainer.verified:
                self._own[trainer.host_pid] = trainer
            else:
                for pid in set(trainer.claimed_pids):
                    self._claimed.setdefault(pid, []).append(trainer)
            if details := trainer.details:
                for pid in details.host_ancestors:
                    self._below.setdefault(pid, []).append(trainer)
                namespace = details.pid_namespace or -trainer.host_pid
                for pid in {*details.inner_pids, *details.inner_ancestors}:
                    self._inside.setdefault(pid, {}).setdefault(namespace, []).append(trainer)

    def groups(self, pid: int) -> list[list[Trainer]]:
        """The readings of `pid`: one when it is clear, several when it is ambiguous. A trainer's own host pid decides."""
        below = self._below.get(pid, [])
        if own := self._own.get(pid):
            return [[own, *(below if pid != _INIT else ())]]
        groups = list(self._inside.get(pid, {}).values())
        # Process 1 of the host is everybody's ancestor and so means nobody, unless no namespace has a process 1 either.
        if below and (pid != _INIT or not groups) and all(below != group for group in groups):
            groups.append(below)
        return groups or self._by_claim(pid)

    def _by_claim(self, pid: int) -> list[list[Trainer]]:
        claiming = self._claimed.get(pid, [])
        own = [trainer for trainer in claiming if trainer.pid == pid]
        return [[trainer] for trainer in own] or ([claiming] if claiming else [])


def _say_ambiguous(pid: int, groups: list[list[Trainer]], found: Selection) -> None:
    found.ambiguous += 1
    known = sorted({trainer.host_pid for group in groups for trainer in group} - {0})
    remedy = (
        f"name host pids: {', '.join(map(str, known))}"
        if known
        else "their host pids are unknown: name a job, a rank or a name"
    )
    found.left_out.append(
        NotTraced(
            pid=pid,
            host_pid=0,
            code="ambiguous",
            error=f"pid {pid} fits processes in {len(groups)} pid namespaces: {remedy}",
        )
    )


# --- names and ranks -----------------------------------------------------------------------------------------------------


def _fits_name_and_rank(trainer: Trainer, request: TraceRequest) -> bool:
    details = trainer.details
    if request.names and not (details and any(name in details.names for name in request.names)):
        return False
    return not request.ranks or bool(details and details.rank in request.ranks)


def _holds_one_of(trainer: Trainer, request: TraceRequest, gpus: GpuHoldings) -> bool:
    return not request.gpus or any(gpu.answers_to(name) for gpu in gpus.of(trainer) for name in request.gpus)


# --- launchers, busy ones, the limit -------------------------------------------------------------------------------------


def _workers(trainers: list[Trainer], request: TraceRequest, roles: Roles, found: Selection) -> list[Trainer]:
    if request.include_launchers:
        return trainers
    named = wanted_pids(request.pids)
    workers = []
    for trainer in trainers:
        if trainer.serial in roles.launchers and trainer.host_pid not in named and trainer.pid not in named:
            found.leave_out(
                trainer,
                "launcher",
                "it only starts others, and its trace would be empty: name it in --pids to trace it all the same",
            )
            if trainer.serial in roles.guessed:
                found.guessed.append(trainer)
        else:
            workers.append(trainer)
    return workers


def _free(trainers: list[Trainer], describe_busy: Callable[[Trainer], str | None], found: Selection) -> list[Trainer]:
    free = []
    for trainer in trainers:
        busy = describe_busy(trainer)
        if busy is None:
            free.append(trainer)
        else:
            found.busy += 1
            found.leave_out(trainer, "busy", busy)
    return free


def _within_limit(
    trainers: list[Trainer], limit: int, preference: Callable[[Trainer], tuple[int, ...]], found: Selection
) -> list[Trainer]:
    if limit <= 0 or len(trainers) <= limit:
        return trainers
    ordered = sorted(trainers, key=preference)
    for trainer in ordered[limit:]:
        found.leave_out(
            trainer, "limit", f"the process limit of {limit} was reached: raise --process-limit, 0 means all"
        )
    return ordered[:limit]


def _preference(trainer: Trainer, roles: Roles, gpus: GpuHoldings) -> tuple[int, ...]:
    """Smaller comes first: holds a GPU, is no launcher, no helper, has a rank; then by rank and pid, so that the same are chosen again."""
    rank = trainer.details.rank if trainer.details else None
    return (
        -gpus.strength(trainer),
        trainer.serial in roles.launchers,
        trainer.serial in roles.helpers,
        rank is None,
        rank or 0,
        trainer.host_pid,
    )
