"""What the process itself brings: PyTorch, of a version that registers, and the variable that lets it."""

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.cli.doctor.subject import Subject, runs_client
from dynolog.cli.target_words import command_for
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import ProcessReader

_OLDEST_RELEASE = (2, 0)
_MOST_LISTED = 8
# What a person means to be off, and libkineto, which looks only whether the variable is there, takes for on.
_MEANT_OFF = ("", "0", "false", "no", "off")


def has_torch(subject: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    """PyTorch is loaded, and 2.0 or later. A CPU build registers like any other."""
    if not subject.may_be_read or subject.seen is None:
        return ()
    torch = subject.seen.torch
    if torch is None:
        return () if subject.trainer else (_without(subject, evidence),)
    version = torch.version or "of unknown version"
    if torch.release is not None and torch.release < _OLDEST_RELEASE and subject.trainer is None:
        return (
            wrong(
                "torch",
                f"its PyTorch is {version}, and only 2.0 and later register",
                "pip install 'torch>=2.0' in its environment, and start it again",
            ),
        )
    device = torch.device or "no accelerator in this build: its traces hold CPU operators only"
    return (ok("torch", f"PyTorch {version} ({device}) in {torch.directory}"),)


def _without(subject: Subject, evidence: Evidence) -> Finding:
    below = sorted(
        seen.pid
        for seen in evidence.survey.torch_processes
        if seen.pid != subject.pid and subject.pid in _ancestors(evidence.host, seen.pid)
    )
    if below:
        more = f" and {len(below) - _MOST_LISTED} more" if len(below) > _MOST_LISTED else ""
        return wrong(
            "torch",
            f"it has not loaded PyTorch itself; processes below it have: {', '.join(map(str, below[:_MOST_LISTED]))}{more}",
            command_for(evidence.target, "doctor", "--pid", str(below[0])),
        )
    is_python = subject.seen is not None and subject.seen.is_python
    what = "it has not imported PyTorch (yet)" if is_python else "it is not Python, and has no PyTorch loaded"
    return wrong("torch", what, "name the process that trains: `ps -ef --forest` shows what runs below it")


def _ancestors(host: HostFiles, pid: int) -> set[int]:
    reader = ProcessReader(host)
    found: set[int] = set()
    try:
        while (pid := reader.stat(pid).parent_pid) > 0 and pid not in found:
            found.add(pid)
    except (OSError, ValueError):  # it has ended
        return found
    return found


def has_variable(subject: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    """KINETO_USE_DAEMON as it was started with it, and the delay."""
    seen = subject.seen
    if seen is None or not seen.is_readable or seen.torch is None or seen.facts is None:
        return ()
    value = subject.environment.get("KINETO_USE_DAEMON")
    if value is None:
        return (_without_variable(subject, evidence, is_known=seen.facts.environment_is_known),)
    if value.strip().lower() in _MEANT_OFF:
        found = note(
            "environment",
            f"KINETO_USE_DAEMON={value} is on: libkineto looks only whether it is set",
            "to have it off: unset KINETO_USE_DAEMON",
        )
    else:
        found = ok("environment", f"KINETO_USE_DAEMON={value}")
    delay = subject.environment.get("KINETO_DAEMON_INIT_DELAY_S")
    if delay is None:
        return (found,)
    return found, note("environment", f"KINETO_DAEMON_INIT_DELAY_S={delay} makes it register so many seconds late")


def _without_variable(subject: Subject, evidence: Evidence, *, is_known: bool) -> Finding:
    # What a program sets in its own environment is not in /proc; then libkineto's socket shows that it was heard.
    if subject.trainer or runs_client(subject, evidence):
        return ok("environment", "it was started without KINETO_USE_DAEMON, and has set that itself")
    if not is_known:
        return note("environment", "its environment shows nothing: it was overwritten, or is empty")
    return wrong(
        "environment",
        "KINETO_USE_DAEMON is not in the environment that it was started with, so it never asks for work",
        f"start it again: KINETO_USE_DAEMON=1 {subject.shell_command}",
    )
