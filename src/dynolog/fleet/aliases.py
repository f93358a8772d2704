"""One daemon under several names: `gpu1` and `gpu1.cluster.local` in one list of hosts must not be two hosts."""

from collections.abc import Sequence

from dynolog.fleet.survey import Survey

# A process of one machine: its pid there, when it began in ticks since the boot, and its pid namespace.
Identity = frozenset[tuple[int, int, int]]


def without_aliases(surveys: Sequence[Survey]) -> tuple[list[Survey], list[str]]:
    """Each daemon under its first name, and a sentence for each other name of it.

    Two answers are of one daemon when they would trace the very same processes. Where nothing can be traced, or the daemon cannot tell
    who its trainers are, nothing is taken for another.
    """
    kept: list[Survey] = []
    said: list[str] = []
    first_of: dict[Identity, Survey] = {}
    for survey in surveys:
        identity = _identity(survey)
        first = first_of.setdefault(identity, survey) if identity else survey
        if first is survey:
            kept.append(survey)
        else:
            said.append(f"{survey.target.name} is {first.target.name} under another name: it is asked once")
    return kept, said


def _identity(survey: Survey) -> Identity:
    trainers = [candidate.trainer for candidate in survey.candidates]
    if not all(trainer.host_pid and trainer.start_time_ticks for trainer in trainers):
        return frozenset()
    return frozenset((trainer.host_pid, trainer.start_time_ticks, trainer.pid_namespace) for trainer in trainers)
