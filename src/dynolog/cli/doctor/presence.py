"""Whether the process is there, who it is, and whether it may be looked into."""

import os

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.cli.doctor.subject import Subject
from dynolog.cli.doctor.survey import Seen
from dynolog.cli.quantities import duration
from dynolog.cli.target_words import command_for
from dynolog.sources.cgroup_identity import parse_cgroup
from dynolog.sources.user_names import UserNames

_TOPIC = "process"


def exists(subject: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    """It runs, and lets itself be looked at."""
    if not evidence.is_local:
        return ()
    if subject.hangs:
        stack = f"cat /proc/{subject.pid}/stack as root says where"
        return (wrong(_TOPIC, "it does not let itself be looked at: it hangs in the kernel", stack),)
    if subject.seen is None:
        return (_absent(subject.pid),)
    stat = subject.seen.facts.stat if subject.seen.facts else None
    if stat is not None and stat.has_ended:
        parent = f"ps -o pid,stat,args -p {stat.parent_pid} shows its parent; `dyno ps` lists those that can be traced"
        return (wrong(_TOPIC, "it has ended, and only waits for its parent to notice (a zombie)", parent),)
    if stat is not None and stat.state in ("T", "t"):
        return (wrong(_TOPIC, "it is stopped (state T): it polls nobody", f"kill -CONT {subject.pid}"),)
    age = f", started {duration(subject.age_s)} ago" if subject.age_s is not None else ""
    thread = f"{subject.thread} is a thread of pid {subject.pid}: " if subject.thread else ""
    who = f"{thread}{subject.command} ({_owner(subject.seen, evidence)}{age})"
    return (ok(_TOPIC, who), *_namesakes(subject, evidence))


def _absent(pid: int) -> Finding:
    try:
        os.kill(pid, 0)  # asks whether there is one; nothing is sent
    except PermissionError:
        return wrong(_TOPIC, "it is there, and /proc hides it from you (hidepid)", f"sudo dyno doctor --pid {pid}")
    except (OSError, OverflowError):
        pass  # no such process
    return wrong(_TOPIC, "no such process is on this machine", "`dyno ps` lists those that can be traced")


def _owner(seen: Seen, evidence: Evidence) -> str:
    identity = parse_cgroup(evidence.host.read_text(f"proc/{seen.pid}/cgroup") or "")
    user = f"user {UserNames(evidence.host).name(seen.uid)}"
    if not identity.container_id:
        return user
    pod = f" of pod {identity.pod_uid}" if identity.pod_uid else ""
    return f"{user}, {identity.runtime or 'in'} container {identity.container_id[:12]}{pod}"


def _namesakes(subject: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    """Trainers in pid namespaces of their own that have this number there: perhaps one of them is meant."""
    others = [one.host_pid for one in evidence.trainers if one.pid == subject.pid != one.host_pid and one.host_pid]
    if not others:
        return ()
    return (
        note(
            _TOPIC,
            f"in a pid namespace of its own, pid {', '.join(map(str, others))} of this machine calls itself {subject.pid} too",
            command_for(evidence.target, "doctor", "--pid", str(others[0])),
        ),
    )


def readable(subject: Subject, evidence: Evidence) -> tuple[Finding, ...]:
    """Its environment and memory map; of no interest once it has registered."""
    if subject.seen is None or subject.seen.is_readable or subject.trainer is not None:
        return ()
    if evidence.own.uid == 0 or evidence.own.has("CAP_SYS_PTRACE"):
        return (
            wrong(
                "permission",
                "not even root may look into it here: it has rights that this root lacks (a container without CAP_SYS_PTRACE?)",
                f"on the host itself: dyno doctor --pid {subject.pid}",
            ),
        )
    return (
        wrong(
            "permission",
            f"it belongs to user {UserNames(evidence.host).name(subject.seen.uid)}: what keeps it from registering is not yours to see",
            f"sudo {command_for(evidence.target, 'doctor', '--pid', str(subject.pid))}",
        ),
    )
