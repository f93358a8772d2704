"""How long a capture will take, said before anybody waits, and how it could be faster."""

from collections.abc import Sequence

import msgspec

from dynolog.model.errors import RequestError
from dynolog.profiling.captures import Timing
from dynolog.profiling.kineto_config import KinetoConfig, Mode
from dynolog.profiling.trainer import Trainer

# libkineto asks every 5 s unless KINETO_CONFIG says otherwise.
DEFAULT_INTERVAL_S = 5.0
# Between taking a config and the warm-up libkineto's own loop turns once a second.
ACCEPT_S = 1.0
# A config for iterations is taken up by the next optimizer step, and waits for neither that loop nor the warm-up.
# Writing: seconds for an ordinary trace, minutes for one of GB; past this a ready trainer without a file is looked at hard.
_WRITING_S = 5.0
# An ordinary trace is written and checked in about this.
_ORDINARY_WRITING_S = 1.0
_SLOW_S = 4.0
_FAST_INTERVAL_S = 1.5


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until the next poll takes the config, until recording can begin after that, and until the file should be there."""

    to_poll_s: float
    to_start_s: float
    total_s: float


def interval_of(trainer: Trainer) -> float:
    """Its poll interval in s as seen, libkineto's default before two polls were."""
    return DEFAULT_INTERVAL_S if trainer.interval_ns is None else trainer.interval_ns / 1e9


def estimate(trainer: Trainer, config: KinetoConfig, now_ns: int, wall_ns: int) -> Estimate:
    """From what is seen of the trainer. In iteration mode the iterations themselves are not in it: their pace is unknown."""
    interval_s = interval_of(trainer)
    since_s = (now_ns - trainer.last_poll_ns) / 1e9
    to_poll_s = max(interval_s - since_s, 0.0)
    if config.mode is Mode.ITERATIONS:
        return Estimate(to_poll_s=to_poll_s, to_start_s=0.0, total_s=to_poll_s + _ORDINARY_WRITING_S)
    to_start_s = ACCEPT_S + config.effective_warmup_s
    begins_s = to_poll_s + to_start_s
    if config.start_time_ms:
        begins_s = max(begins_s, config.start_time_ms / 1000 - wall_ns / 1e9)
    return Estimate(
        to_poll_s=to_poll_s, to_start_s=to_start_s, total_s=begins_s + config.duration_ms / 1000 + _ORDINARY_WRITING_S
    )


def timing_of(trainer: Trainer, config: KinetoConfig) -> Timing:
    """When an obedient trainer must be done: a late reply costs one more interval, writing takes a while."""
    if config.mode is Mode.ITERATIONS:
        return Timing()
    recording_s = ACCEPT_S + config.effective_warmup_s + config.duration_ms / 1000
    return Timing(
        start_time_ms=config.start_time_ms,
        warmup_s=config.effective_warmup_s,
        interval_s=interval_of(trainer),
        longest_s=interval_of(trainer) + recording_s + _WRITING_S,
    )


def require_time_enough(config: KinetoConfig, trainers: Sequence[Trainer], wall_ns: int) -> None:
    """Raises RequestError("start_time") when the start time is past, or comes before all can have polled and warmed up."""
    if not config.start_time_ms or config.mode is Mode.ITERATIONS or not trainers:
        return
    now_ms = wall_ns // 1_000_000
    interval_s = max(map(interval_of, trainers))
    needed_s = interval_s + ACCEPT_S + config.effective_warmup_s
    if config.start_time_ms >= now_ms + needed_s * 1000:
        return
    # Two seconds for typing and for the way here; whole seconds are easier to type.
    proposed_ms = -(-(now_ms + int((needed_s + 2) * 1000)) // 1000) * 1000
    ahead_s = (config.start_time_ms - now_ms) / 1000
    where = f"is {-ahead_s:.1f} s in the past" if ahead_s < 0 else f"is only {ahead_s:.1f} s ahead"
    raise RequestError(
        "start_time",
        f"PROFILE_START_TIME={config.start_time_ms} {where}, and the trainers need {needed_s:.1f} s (they poll every "
        f"{interval_s:.1f} s and warm up {config.effective_warmup_s} s): use {proposed_ms} or later, or 0 for now",
    )


def notes(config: KinetoConfig, trainers: Sequence[Trainer], estimates: Sequence[Estimate]) -> list[str]:
    """What a person should know before waiting."""
    if not trainers:
        return []
    interval_s = max(map(interval_of, trainers))
    slowest = max(estimates, key=lambda entry: entry.total_s)
    polls = f"they poll every {interval_s:.1f} s"
    if any(trainer.interval_ns is None for trainer in trainers):
        polls += ", by default: not all were seen polling twice"
    said = []
    if config.mode is Mode.ITERATIONS:
        said.append(
            f"recording begins with an iteration after the next poll, which comes within {slowest.to_poll_s:.1f} s ({polls}), and ends "
            f"after {config.iterations} iterations"
        )
        if len(trainers) > 1:
            said.append(
                f"each rank rounds its own iteration up to a multiple of {max(config.roundup, 1)}: they start together only when fewer "
                f"iterations than that pass in {interval_s:.1f} s"
            )
        return said
    said.append(
        f"the files are there in about {slowest.total_s:.0f} s: next poll within {slowest.to_poll_s:.1f} s ({polls}), "
        f"warm-up {config.effective_warmup_s} s, recording {config.duration_ms / 1000:g} s"
    )
    faster = []
    if interval_s > _FAST_INTERVAL_S:
        faster.append(
            "start the trainers with KINETO_CONFIG naming a file with the line ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1"
        )
    if config.effective_warmup_s:
        faster.append("ask with --warmup-s 0")
    if faster and slowest.total_s - config.duration_ms / 1000 > _SLOW_S and not config.start_time_ms:
        said.append("to have it within about 2 s: " + ", and ".join(faster))
    return said
