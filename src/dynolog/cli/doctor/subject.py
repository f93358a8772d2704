"""One process that somebody wants to trace: as this machine shows it, and as the daemon knows it."""

import os
import time

import msgspec

from dynolog.cli.doctor.evidence import Evidence, Sockets
from dynolog.cli.doctor.patience import look_at_each
from dynolog.cli.doctor.survey import Seen, look_at
from dynolog.model.trace_request import NotTraced
from dynolog.model.trainer import TrainerInfo
from dynolog.sources.open_files import open_links
from dynolog.sources.process import parse_leader_pid

_LONGEST_COMMAND = 240
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """`pid` is this machine's. `seen` is None when there is no such process here, `hangs` when it did not let itself be looked at.

    `age_s` is how long it has run (None: unknown). `sockets` are those of its network namespace. `verdict` is what the daemon says to a
    request for its trace that starts nothing: None when it would be traced, or was not asked. `thread` is the one of its threads that was
    asked for, 0 for the process itself.
    """

    pid: int
    seen: Seen | None = None
    hangs: bool = False
    trainer: TrainerInfo | None = None
    age_s: float | None = None
    sockets: Sockets = Sockets()
    verdict: NotTraced | None = None
    log_file: str = ""
    thread: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """Its named variables, {} when they cannot be read."""
        return self.seen.facts.environment if self.seen and self.seen.facts else {}

    @property
    def net_namespace(self) -> int:
        """Inode number, 0 when unknown."""
        return self.seen.facts.net_namespace if self.seen and self.seen.facts else 0

    @property
    def command(self) -> str:
        """Its command line, cut."""
        if self.seen is None:
            return self.trainer.command if self.trainer else ""
        return " ".join(self.seen.arguments)[:_LONGEST_COMMAND] or self.seen.name

    @property
    def shell_command(self) -> str:
        """Its command line as a shell takes it, "..." where it is too long to show."""
        import shlex  # noqa: PLC0415 - only for a remedy

        text = shlex.join(self.seen.arguments) if self.seen else ""
        return text if 0 < len(text) <= _LONGEST_COMMAND else "..."

    @property
    def may_be_read(self) -> bool:
        """Whether its environment and memory map are ours to see."""
        return self.seen is not None and self.seen.is_readable


def find_subject(evidence: Evidence, pid: int) -> Subject:
    """Look at one process of this machine by its pid here, or by that of a trainer in its own namespace when none has it here."""
    if not evidence.is_local:
        return Subject(pid=pid, trainer=_claimed(evidence, pid))
    is_here = os.path.exists(evidence.host.path(f"proc/{pid}"))
    here = pid if is_here else _in_namespace(evidence, pid) or pid
    leader = parse_leader_pid((evidence.host.read_text(f"proc/{here}/status") or "").encode()) or here
    looks = look_at_each([leader], lambda one: look_at(evidence.host, one, whole=True))
    subject = subject_of(evidence, leader, looks.answers.get(leader))
    return msgspec.structs.replace(subject, hangs=bool(looks.hanging), thread=here if here != leader else 0)


def subject_of(evidence: Evidence, pid: int, seen: Seen | None) -> Subject:
    """What else is to be known of a process that was seen."""
    facts = seen.facts if seen else None
    return Subject(
        pid=pid,
        seen=seen,
        trainer=evidence.trainer_of(pid),
        age_s=_age_s(facts.stat.start_time_ticks) if facts else None,
        sockets=evidence.sockets_of(pid, facts.net_namespace) if facts else Sockets(),
    )


def _claimed(evidence: Evidence, pid: int) -> TrainerInfo | None:
    """The trainer whose host pid it is, else the only one that calls itself so in its own namespace."""
    if trainer := evidence.trainer_of(pid):
        return trainer
    claiming = [trainer for trainer in evidence.trainers if trainer.pid == pid]
    return claiming[0] if len(claiming) == 1 else None


def _in_namespace(evidence: Evidence, pid: int) -> int:
    """The one process that has this pid in a namespace of its own, by its pid here; 0 for none and for several."""
    found = {
        seen.pid
        for seen in evidence.survey.torch_processes
        if seen.facts and len(seen.facts.namespace_pids) > 1 and seen.facts.namespace_pids[-1] == pid
    }
    if (trainer := _claimed(evidence, pid)) and trainer.host_pid:
        found.add(trainer.host_pid)
    return found.pop() if len(found) == 1 else 0


def runs_client(subject: Subject, evidence: Evidence) -> bool:
    """Whether libkineto's client runs in this very process: one of the sockets that it polls from is open there."""
    clients = subject.sockets.clients
    # Where no such socket is at all, nobody's files are looked through.
    return bool(clients) and any(link in clients for link in open_links(evidence.host.path(f"proc/{subject.pid}/fd")))


def _age_s(start_time_ticks: int) -> float:
    """Both count from boot, suspended time included (proc_pid_stat(5))."""
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - start_time_ticks / _TICKS_PER_S, 0.0)
