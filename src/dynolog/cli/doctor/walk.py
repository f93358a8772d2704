"""Why a process would not be traced: one question after another, from whether it is there to whether it may write its file."""

from collections.abc import Callable, Iterator

import msgspec

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level, note, ok, wrong
from dynolog.cli.doctor.ipc_checks import SWITCH_ON
from dynolog.cli.doctor.reach import reach
from dynolog.cli.doctor.registration import registration
from dynolog.cli.doctor.subject import Subject
from dynolog.cli.quantities import duration
from dynolog.cli.target_words import command_for
from dynolog.model.trainer import TrainerState

_OLDEST_RELEASE = (2, 0)
_ON = "KINETO_USE_DAEMON=1"


class Walk(msgspec.Struct, frozen=True):
    """The steps that were taken, in order; `obstacles` are those that stand in the way of a trace."""

    subject: Subject
    steps: tuple[Finding, ...]

    @property
    def obstacles(self) -> tuple[Finding, ...]:
        """The first one is the verdict."""
        return tuple(step for step in self.steps if step.level is Level.WRONG)


def walk(subject: Subject, evidence: Evidence) -> Walk:
    """Take the steps. Without the process there are no more; whether it registered is asked only when nothing before hinders it."""
    steps: list[Finding] = []
    for step in _STEPS:
        found = step(subject, evidence)
        if found is None:
            continue
        steps += found if isinstance(found, tuple) else (found,)
        if step in _LAST_WHEN_WRONG and any(one.level is Level.WRONG for one in steps):
            return Walk(subject, tuple(steps))
    if not any(one.level is Level.WRONG for one in steps):
        steps += _after(subject, evidence)
    return Walk(subject, tuple(steps))


def _exists(subject: Subject, evidence: Evidence) -> Finding | None:
    if not evidence.is_local:
        return None
    if subject.hangs:
        return wrong(
            "process",
            "it does not let itself be looked at: it hangs in the kernel (state D?)",
            f"cat /proc/{subject.pid}/stack as root",
        )
    if subject.seen is None:
        return wrong("process", "no such process is on this machine", "`dyno ps` lists those that can be traced")
    stat = subject.seen.facts.stat if subject.seen.facts else None
    if stat is not None and stat.has_ended:
        return wrong("process", "it has ended, and only waits for its parent to notice (a zombie)")
    if stat is not None and stat.state in ("T", "t"):
        return wrong(
            "process", "it is stopped (state T): it does not run, so it polls nobody", f"kill -CONT {subject.pid}"
        )
    age = f", started {duration(subject.age_s)} ago" if subject.age_s is not None else ""
    return ok("process", f"{subject.command} (uid {subject.seen.uid}{age})")


def _permission(subject: Subject, evidence: Evidence) -> Finding | None:
    if subject.seen is None or subject.seen.is_readable or subject.trainer is not None:
        return None
    return wrong(
        "permission",
        f"it belongs to uid {subject.seen.uid}: why it has not registered cannot be seen by uid {evidence.own.uid}",
        f"run it as root: sudo {command_for(evidence.target, 'doctor', '--pid', str(subject.pid))}",
    )


def _torch(subject: Subject, evidence: Evidence) -> Finding | None:
    seen = subject.seen
    if seen is None or not seen.is_readable:
        return None
    if seen.torch is None:
        return None if subject.trainer else _without_torch(subject, evidence)
    version, release = seen.torch.version or "of unknown version", seen.torch.release
    if release is not None and release < _OLDEST_RELEASE and subject.trainer is None:
        return wrong(
            "torch",
            f"its PyTorch is {version}, and only 2.0 and later register",
            "pip install 'torch>=2.0' in its environment, and start it again",
        )
    # A CPU build registers at import as well; its traces have no kernels.
    device = seen.torch.device or "no accelerator in this build: its traces hold CPU operators only"
    return ok("torch", f"PyTorch {version} ({device}) in {seen.torch.directory}")


def _without_torch(subject: Subject, evidence: Evidence) -> Finding:
    below = sorted(
        seen.pid
        for seen in evidence.survey.torch_processes
        if seen.facts and any(ancestor.pid == subject.pid for ancestor in seen.facts.ancestors)
    )
    if below:
        shown = ", ".join(map(str, below[:8])) + (f" and {len(below) - 8} more" if len(below) > 8 else "")
        return wrong(
            "torch",
            f"it has not loaded PyTorch itself; processes below it have: {shown}",
            command_for(evidence.target, "doctor", "--pid", str(below[0])),
        )
    what = (
        "it has not imported PyTorch (yet)"
        if subject.seen and subject.seen.is_python
        else "it is not Python, and has no PyTorch loaded"
    )
    return wrong("torch", what, "name the process that trains: `ps -ef --forest` shows what runs below it")


def _environment(subject: Subject, _: Evidence) -> tuple[Finding, ...]:
    seen = subject.seen
    if seen is None or not seen.is_readable or seen.torch is None or seen.facts is None:
        return ()
    value = subject.environment.get("KINETO_USE_DAEMON")
    if value is None:
        if subject.clients or subject.trainer:
            return (ok("environment", "it was started without KINETO_USE_DAEMON, and has set that itself"),)
        if not seen.facts.environment_is_known:
            return (note("environment", "its environment is empty or gone"),)
        return (
            wrong(
                "environment",
                "KINETO_USE_DAEMON is not in the environment that it was started with, so it never asks for work",
                f"start it again: {_ON} {subject.command}",
            ),
        )
    found = [ok("environment", f"KINETO_USE_DAEMON={value}")]
    if value.strip().lower() in ("", "0", "false", "no", "off"):
        found = [
            note(
                "environment",
                f"KINETO_USE_DAEMON={value} is on: libkineto looks only whether it is set",
                "to have it off: unset KINETO_USE_DAEMON",
            )
        ]
    if (delay := subject.environment.get("KINETO_DAEMON_INIT_DELAY_S")) is not None:
        found.append(note("environment", f"KINETO_DAEMON_INIT_DELAY_S={delay} makes it register so many seconds late"))
    return tuple(found)


def _daemon(_: Subject, evidence: Evidence) -> Finding | None:
    if evidence.status is None:
        return wrong("daemon", evidence.unreachable)
    if not evidence.status.ipc.enabled:
        return wrong("daemon", "the daemon's IPC is off: no process can be traced", SWITCH_ON)
    return ok("daemon", f"dynolog {evidence.status.version} answers, its IPC is on")


def _reach(subject: Subject, evidence: Evidence) -> Finding | None:
    return None if subject.seen is None or not subject.seen.is_readable or subject.trainer else reach(subject, evidence)


def _after(subject: Subject, evidence: Evidence) -> Iterator[Finding]:
    """Nothing hinders it from registering: has it, and would it be traced now?"""
    yield registration(subject, evidence)
    trainer = subject.trainer
    if trainer is None:
        return
    if subject.verdict is not None:
        yield wrong("trace", f"{subject.verdict.error} ({subject.verdict.code})")
    elif subject.log_file:
        yield ok("trace", f"it may write {subject.log_file}, by a request that started nothing")
    if trainer.state is not TrainerState.IDLE:
        capture = f" (capture {trainer.capture}: `{command_for(evidence.target, 'trace')}`)" if trainer.capture else ""
        yield note("trace", f"it is {trainer.state} with a trace now{capture}: another one waits for that")


_Step = Callable[[Subject, Evidence], Finding | tuple[Finding, ...] | None]
_STEPS: tuple[_Step, ...] = (_exists, _permission, _torch, _environment, _daemon, _reach)
_LAST_WHEN_WRONG: tuple[_Step, ...] = (_exists,)
