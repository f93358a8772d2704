"""Whether a process that could register has, and if not, what is left to suspect."""

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, ok, wrong
from dynolog.cli.doctor.subject import Subject, runs_client
from dynolog.cli.quantities import duration
from dynolog.model.trainer import TrainerInfo

TOPIC = "registered"
# Importing PyTorch takes some seconds, the first poll five more.
_SETTLED_S = 20.0
_POLL_S = 5.0


def registration(subject: Subject, evidence: Evidence) -> Finding:
    """By the daemon's list."""
    if subject.trainer is not None:
        return _polls(subject.trainer)
    if not evidence.is_local:
        return wrong(
            TOPIC,
            "it is not among the trainers of that daemon; why can be seen on its machine only",
            f"there: dyno doctor --pid {subject.pid}",
        )
    delay_s = _seconds(subject.environment.get("KINETO_DAEMON_INIT_DELAY_S", ""))
    return _too_early(subject, evidence, delay_s) or _suspicion(subject, evidence, delay_s)


def _too_early(subject: Subject, evidence: Evidence, delay_s: float) -> Finding | None:
    again = f"ask again in {_SETTLED_S:.0f} s"
    if subject.age_s is not None and subject.age_s < _SETTLED_S + delay_s:
        return wrong(
            TOPIC,
            "it has not registered yet: it was started less than half a minute ago, or waits for its delay",
            again,
        )
    if evidence.status is not None and evidence.status.own.uptime_s < 2 * _POLL_S:
        return wrong(
            TOPIC, "it has not registered yet: the daemon was started a moment ago, and processes poll every 5 s", again
        )
    return None


def _suspicion(subject: Subject, evidence: Evidence, delay_s: float) -> Finding:
    if delay_s:
        return wrong(
            TOPIC,
            "it has not registered, and some versions of libkineto never do with KINETO_DAEMON_INIT_DELAY_S set",
            "start it again without KINETO_DAEMON_INIT_DELAY_S",
        )
    if runs_client(subject, evidence):
        return wrong(
            TOPIC,
            "libkineto's client runs in it, and none of its messages has come in the last minute",
            "look for lines of IpcFabricConfigClient in its log; if it hangs (`py-spy dump`, state D), that is why",
        )
    return wrong(
        TOPIC,
        "it has PyTorch and the variable, and libkineto's client does not run in it",
        "see whether its build has Kineto: python -c 'import torch; print(torch.profiler.kineto_available())'; a process "
        "that was forked from one with PyTorch must import it itself (spawn)",
    )


def _polls(trainer: TrainerInfo) -> Finding:
    every = trainer.poll_interval_s or _POLL_S
    since = f"registered {duration(trainer.age_s)} ago, last poll {duration(trainer.last_poll_age_s)} ago"
    if trainer.last_poll_age_s > 3 * every + _POLL_S:
        return wrong(
            TOPIC,
            "it had registered and has stopped polling, three of its intervals long: it is stopped, frozen or hangs",
            f"see its state in `ps -o pid,stat,wchan -p {trainer.host_pid or trainer.pid}`",
        )
    return ok(TOPIC, since)


def _seconds(text: str) -> float:
    try:
        return max(float(text), 0.0) if text else 0.0
    except ValueError:
        return 0.0
