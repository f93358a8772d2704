"""The PyTorch processes of this machine: which of them cannot be traced, those alike in one sentence."""

from collections.abc import Iterable, Iterator

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level, note, ok, wrong
from dynolog.cli.doctor.subject import subject_of
from dynolog.cli.doctor.walk import Walk, walk
from dynolog.cli.quantities import processes

_MOST_LISTED = 8
# With the daemon or its IPC off no process registers: that is said once, by its own check.
_SAID_ELSEWHERE = "daemon"


def check_trainers(evidence: Evidence) -> Iterator[Finding]:
    """Each PyTorch process; and those that could not be looked into."""
    if not evidence.is_local:
        return
    walks = [walk(subject_of(evidence, seen.pid, seen), evidence) for seen in evidence.survey.torch_processes]
    yield from grouped(walks)
    if not walks and not evidence.survey.unreadable:
        yield ok("trainers", "no process here has loaded PyTorch")
    if hidden := evidence.survey.unreadable:
        yield note(
            "trainers",
            f"{processes(hidden)} of other users that {'is' if hidden == 1 else 'are'} Python could not be looked into",
            "run as root to see them: sudo dyno doctor",
        )
    if hanging := evidence.survey.hanging:
        yield wrong(
            "processes",
            f"{processes(len(hanging))} ({pids_of(hanging)}) did not answer a look into /proc in time",
            "they hang in the kernel: `ps -o pid,stat,wchan` and `dmesg` say where",
        )


def grouped(walks: Iterable[Walk]) -> Iterator[Finding]:
    """One finding for all that have the same obstacle or the same remark."""
    alike: dict[tuple[str, str, str], tuple[Finding, list[int]]] = {}
    traceable: list[int] = []
    for one in walks:
        told = [step for step in one.steps if step.level is not Level.OK and step.topic != _SAID_ELSEWHERE]
        for step in told:
            alike.setdefault((step.level, step.topic, step.text), (step, []))[1].append(one.subject.pid)
        if not one.obstacles:
            traceable.append(one.subject.pid)
    for step, pids in alike.values():
        say = wrong if step.level is Level.WRONG else note
        yield say("trainers", f"{processes(len(pids))} with PyTorch ({pids_of(pids)}): {step.text}", step.remedy)
    if traceable:
        yield ok("trainers", f"{processes(len(traceable))} with PyTorch can be traced ({pids_of(traceable)})")


def pids_of(pids: Iterable[int]) -> str:
    """`pid 4`, `pids 4, 5`, at most eight of them."""
    listed = sorted(pids)
    more = f" and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
    return f"pid{'' if len(listed) == 1 else 's'} {', '.join(map(str, listed[:_MOST_LISTED]))}{more}"
