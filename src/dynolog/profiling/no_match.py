"""Why a request matched nobody: a code for programs, and a sentence that says what is there and what to do."""

from collections.abc import Callable, Sequence

from dynolog.model.trace_request import TraceRequest
from dynolog.profiling.gpu_holdings import GpuHoldings
from dynolog.profiling.job import JobSelector
from dynolog.profiling.matching import Selection, wanted_pids
from dynolog.profiling.trainer import Trainer

_MOST_LISTED = 8
# Named pids that are looked for among the live processes.
MOST_PROBED = 64
# Codes that may mean a process which could register and has not.
NOT_REGISTERED = ("no_trainer_registered", "pid_not_registered")
_REGISTER = "start it with KINETO_USE_DAEMON=1, PyTorch 2.0 or later"


def explain(
    request: TraceRequest,
    job: JobSelector,
    trainers: Sequence[Trainer],
    found: Selection,
    gpus: GpuHoldings,
    *,
    ipc_enabled: bool,
    is_alive: Callable[[int], bool],
) -> tuple[str, str]:
    """Code and sentence for an empty match."""
    if not ipc_enabled:
        return "ipc_off", "this daemon does not listen to trainers: start it with --enable_ipc_monitor"
    if found.forbidden or found.ambiguous:
        return _not_to_be_chosen(found)
    pids = sorted(wanted_pids(request.pids))
    here = any(trainer.pid in pids or trainer.host_pid in pids for trainer in trainers)
    if pids and not here and not any(map(is_alive, pids[:MOST_PROBED])):
        return "pid_dead", f"{_list('pid', pids)}: no such process here. {_registered(trainers)}"
    if not trainers:
        lead = f"{_list('pid', pids)} {'are' if len(pids) > 1 else 'is'} alive, but no" if pids else "no"
        return (
            "no_trainer_registered",
            f"{lead} trainer has registered: {_REGISTER}, and give it one poll interval (5 s).",
        )
    if not found.by_name:
        return _unlike(request, job, trainers, found, pids)
    return "no_gpu", f"no trainer that matches holds {_list('GPU', request.gpus)}. {_held(trainers, gpus)}"


def _not_to_be_chosen(found: Selection) -> tuple[str, str]:
    if not found.forbidden:
        return "ambiguous", "; ".join(entry.error for entry in found.left_out if entry.code == "ambiguous")
    return (
        "forbidden",
        f"what matches ({found.forbidden}) belongs to other users: ask as their user, as root, or with a token",
    )


def _unlike(
    request: TraceRequest, job: JobSelector, trainers: Sequence[Trainer], found: Selection, pids: Sequence[int]
) -> tuple[str, str]:
    """There are trainers, but not these."""
    elsewhere = _elsewhere(trainers, pids)
    if not found.in_job:
        remedy = elsewhere or "; --job-id chooses one of those that are here"
        return "job_not_found", f"no trainer belongs to job {job}{remedy}. {_registered(trainers)}"
    if not found.by_pid:
        remedy = elsewhere or f": {_REGISTER}"
        verb = "have" if len(pids) > 1 else "has"
        return (
            "pid_not_registered",
            f"{_list('pid', pids)} {verb} not registered as a trainer{remedy}. {_registered(trainers)}",
        )
    wanted = " and ".join(filter(None, (_list("name", request.names), _list("rank", request.ranks))))
    unread = sum(trainer.details is None for trainer in trainers)
    hint = f" (names and ranks of {unread} trainers could not be read)" if unread else ""
    return "no_name_or_rank", f"no trainer has {wanted}{hint}. {_registered(trainers)}"


def _elsewhere(trainers: Sequence[Trainer], pids: Sequence[int]) -> str:
    """The usual mistake: the pid is there, but in a job, and the request did not say which."""
    jobs = sorted({trainer.job.text or "0" for trainer in trainers if trainer.host_pid in pids or trainer.pid in pids})
    if jobs:
        return f"; the pid is registered in {_list('job', jobs)}: give it as --job-id"
    below = sorted(
        {
            trainer.job.text or "0"
            for trainer in trainers
            if trainer.details and set(pids) & set(trainer.details.host_ancestors)
        }
    )
    return f"; processes below it are registered in {_list('job', below)}: give it as --job-id" if below else ""


def _held(trainers: Sequence[Trainer], gpus: GpuHoldings) -> str:
    pids: dict[str, list[int]] = {}
    for trainer in trainers:
        for gpu in gpus.of(trainer):
            pids.setdefault(gpu.text, []).append(trainer.host_pid or trainer.pid)
    if not pids:
        return "No trainer is known to hold one."
    shown = [f"GPU {gpu}: {_list('pid', sorted(pids[gpu]))}" for gpu in sorted(pids, key=lambda gpu: (len(gpu), gpu))]
    more = len(shown) - _MOST_LISTED
    return "Held: " + "; ".join(shown[:_MOST_LISTED]) + (f"; and {more} more GPUs" if more > 0 else "") + "."


def _registered(trainers: Sequence[Trainer]) -> str:
    if not trainers:
        return "No trainer has registered."
    by_job: dict[str, list[int]] = {}
    for trainer in trainers:
        by_job.setdefault(trainer.job.text or "0", []).append(trainer.host_pid or trainer.pid)
    shown = [f"job {job}: {_list('pid', sorted(pids))}" for job, pids in sorted(by_job.items())[:_MOST_LISTED]]
    more = len(by_job) - len(shown)
    return "Registered: " + "; ".join(shown) + (f"; and {more} more jobs" if more > 0 else "") + "."


def _list(what: str, values: Sequence[int | str]) -> str:
    if not values:
        return ""
    shown = ", ".join(map(str, values[:_MOST_LISTED]))
    more = len(values) - _MOST_LISTED
    return f"{what}{'s' if len(values) > 1 else ''} {shown}" + (f" and {more} more" if more > 0 else "")
