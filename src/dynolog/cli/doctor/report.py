"""Findings and walks as text."""

from collections.abc import Iterable, Sequence
from typing import Any

from dynolog.cli.doctor.dry_run import DEFAULT_LOG_FILE
from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level
from dynolog.cli.doctor.trainer_checks import pids_of
from dynolog.cli.doctor.walk import Walk
from dynolog.cli.printable import printable
from dynolog.cli.quantities import processes
from dynolog.cli.target_words import command_for

_MARKS = {Level.WRONG: "WRONG", Level.NOTE: "note", Level.OK: "ok"}


def findings_text(findings: Sequence[Finding], *, verbose: bool) -> str:
    """A line a finding, the remedy below it, and a conclusion at the end; what is in order only with `verbose`."""
    lines = list(_lines(one for one in findings if verbose or one.level is not Level.OK))
    count = sum(one.level is Level.WRONG for one in findings)
    in_order = sum(one.level is Level.OK for one in findings)
    conclusion = f"{count} {'thing is' if count == 1 else 'things are'} wrong" if count else "Nothing is wrong"
    rest = "" if verbose else f" {in_order} more {'is' if in_order == 1 else 'are'} in order: --verbose lists them."
    return "\n".join([*lines, f"{conclusion}.{rest}"])


def _lines(findings: Iterable[Finding]) -> Iterable[str]:
    for finding in findings:
        yield printable(f"{_MARKS[finding.level]:<6}{finding.topic}: {finding.text}")
        if finding.remedy:
            yield printable(f"      -> {finding.remedy}")


def verdict(walk: Walk, evidence: Evidence) -> tuple[str, str]:
    """One sentence, and the command that comes next."""
    pid = walk.subject.pid
    if obstacle := next(iter(walk.obstacles), None):
        return f"pid {pid} would not be traced: {obstacle.text}", obstacle.remedy
    return f"pid {pid} can be traced", _trace_command(walk, evidence)


def _trace_command(walk: Walk, evidence: Evidence) -> str:
    trainer = walk.subject.trainer
    job = ("--job-id", trainer.job or str(trainer.job_id)) if trainer and (trainer.job or trainer.job_id) else ()
    words = (
        "gputrace",
        "--log-file",
        walk.subject.log_file or DEFAULT_LOG_FILE,
        "--pids",
        str(walk.subject.pid),
        *job,
    )
    return command_for(evidence.target, *words)


def walk_text(walk: Walk, evidence: Evidence) -> str:
    """The steps, then the verdict and the command."""
    sentence, remedy = verdict(walk, evidence)
    others = len(walk.obstacles) - 1
    more = f" (and {others} more above)" if others > 0 else ""
    lines = [*_lines(walk.steps), printable(f"{sentence}{more}")]
    return "\n".join([*lines, printable(f"      -> {remedy}")] if remedy else lines)


def walks_text(walks: Sequence[Walk], evidence: Evidence) -> str:
    """Many processes: those with the same verdict together, the most of them first."""
    alike: dict[str, list[Walk]] = {}
    for walk in walks:
        alike.setdefault(verdict(walk, evidence)[0].partition(" ")[2].partition(" ")[2], []).append(walk)
    lines = []
    for sentence, members in sorted(alike.items(), key=lambda item: -len(item[1])):
        pids = [member.subject.pid for member in members]
        lines.append(printable(f"{processes(len(pids))} ({pids_of(pids)}) {sentence}"))
        if (remedy := verdict(members[0], evidence)[1]) and members[0].obstacles:
            lines.append(printable(f"      -> {remedy}"))
    return "\n".join(lines)


def walk_object(walk: Walk, evidence: Evidence) -> dict[str, Any]:
    """For --json."""
    sentence, remedy = verdict(walk, evidence)
    seen, trainer = walk.subject.seen, walk.subject.trainer
    return {
        "pid": walk.subject.pid,
        "command": walk.subject.command,
        "torch": seen.torch.version if seen and seen.torch else "",
        "registered": trainer is not None,
        "traceable": not walk.obstacles,
        "verdict": sentence,
        "remedy": remedy,
        "steps": walk.steps,
    }
