"""When recording begins, so that it begins everywhere at once."""

import math
from collections.abc import Sequence

from dynolog.fleet.survey import DEFAULT_POLL_S, Survey

# Between taking a config and the warm-up libkineto's own loop turns once a second.
ACCEPT_S = 1.0
_SLACK_S = 1.0
# One trainer that reads its daemon's answer late takes it at its next poll: rare, but of so many it must be expected.
MANY_PROCESSES = 64


def lead_s(surveys: Sequence[Survey], warmup_s: float) -> float:
    """How far ahead the start must lie for the slowest poll, the warm-up, and for asking all hosts (as slow as the first time).

    With many processes for two polls, so that one late answer costs no trace.
    """
    slowest_poll_s = max((survey.slowest_poll_s for survey in surveys), default=DEFAULT_POLL_S)
    if sum(len(survey.candidates) for survey in surveys) >= MANY_PROCESSES:
        slowest_poll_s *= 2
    asking_s = max((survey.elapsed_s for survey in surveys), default=0.0) + 0.002 * len(surveys)
    return slowest_poll_s + ACCEPT_S + warmup_s + asking_s + _SLACK_S


def start_on_host_ns(start_wall_ns: int, survey: Survey) -> int:
    """Our start time by the clock of a host."""
    return start_wall_ns + (survey.offset.correction_ns if survey.offset is not None else 0)


def iterations_in_a_poll(surveys: Sequence[Survey], step_ms: float) -> int:
    """How many iterations may pass between the first and the last rank's poll: the round-up must be more."""
    slowest_poll_s = max((survey.slowest_poll_s for survey in surveys), default=DEFAULT_POLL_S)
    return math.ceil((slowest_poll_s + ACCEPT_S) * 1000 / step_ms)


def roundup_for(iterations: int) -> int:
    """The next round number above so many iterations: 10, 20, 50, 100, 200..."""
    scale = 10
    while True:
        for number in (scale, 2 * scale, 5 * scale):
            if number > iterations:
                return number
        scale *= 10
