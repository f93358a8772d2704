"""Why a process would not be traced: one question after another, from whether it is there to whether it may write its file."""

from collections.abc import Callable, Iterator

import msgspec

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level, note, ok, wrong
from dynolog.cli.doctor.ipc_checks import SWITCH_ON
from dynolog.cli.doctor.presence import exists, readable
from dynolog.cli.doctor.reach import reach
from dynolog.cli.doctor.registration import registration
from dynolog.cli.doctor.subject import Subject
from dynolog.cli.doctor.torch_steps import has_torch, has_variable
from dynolog.cli.target_words import command_for
from dynolog.model.trace_request import NotTraced
from dynolog.model.trainer import TrainerState


class Walk(msgspec.Struct, frozen=True):
    """The steps that were taken, in order; `obstacles` are those that stand in the way of a trace."""

    subject: Subject
    steps: tuple[Finding, ...]

    @property
    def obstacles(self) -> tuple[Finding, ...]:
        """The first one is the verdict."""
        return tuple(step for step in self.steps if step.level is Level.WRONG)


def walk(subject: Subject, evidence: Evidence) -> Walk:
    """Take the steps. A process that is not there ends it; whether it has registered is asked only when nothing hinders it from that."""
    steps = list(exists(subject, evidence))
    for step in _STEPS if not _is_hindered(steps) else ():
        steps += step(subject, evidence)
    if not _is_hindered(steps):
        steps += _now(subject, evidence)
    return Walk(subject, tuple(steps))


def _is_hindered(steps: list[Finding]) -> bool:
    return any(step.level is Level.WRONG for step in steps)


def _daemon(_: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    if evidence.status is None:
        return (wrong("daemon", evidence.unreachable),)
    if not evidence.status.ipc.enabled:
        return (wrong("daemon", "the daemon's IPC is off: no process can be traced", SWITCH_ON),)
    return (ok("daemon", f"dynolog {evidence.status.version} answers, its IPC is on"),)


def _reach(subject: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    if not subject.may_be_read or subject.trainer or evidence.status is None or not evidence.status.ipc.enabled:
        return ()
    return (reach(subject, evidence, evidence.status.ipc.addresses),)


_STEPS: tuple[Callable[[Subject, Evidence], tuple[Finding, ...]], ...] = (
    readable,
    has_torch,
    has_variable,
    _daemon,
    _reach,
)


def _now(subject: Subject, evidence: Evidence) -> Iterator[Finding]:
    """It could register: has it, and would it be traced now?"""
    yield registration(subject, evidence)
    trainer = subject.trainer
    if trainer is None:
        return
    if subject.verdict is not None:
        yield wrong("trace", f"{subject.verdict.error} ({subject.verdict.code})", _remedy(subject.verdict, evidence))
    elif subject.log_file:
        yield ok("trace", f"a trace to {subject.log_file} would be taken (asked without starting one)")
    if trainer.state is not TrainerState.IDLE:
        capture = f": capture {trainer.capture}" if trainer.capture else ""
        yield note(
            "trace",
            f"it is {trainer.state} with a trace now{capture}; another one waits for that",
            command_for(evidence.target, "trace"),
        )


def _remedy(verdict: NotTraced, evidence: Evidence) -> str:
    """What the daemon's own sentence leaves open."""
    match verdict.code:
        case "launcher":
            return f"trace its workers: {command_for(evidence.target, 'ps')} lists them"
        case "forbidden":
            return "ask as its user or as root"
        case "busy":
            return f"wait for the trace that it is busy with: {command_for(evidence.target, 'trace')} lists it"
        case _:
            return ""
