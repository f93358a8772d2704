"""How long an iteration takes, from the steps that a short trace of a process holds."""

from collections.abc import Iterable, Sequence

import msgspec

# What PyTorch writes around a step, and counts for libkineto: torch.profiler's own, and every torch.optim optimizer's.
_STEP_NAMES = ("ProfilerStep#", "Optimizer.step#")
# On a GPU the same names are written once more, for the work that they started there.
_OF_THE_GPU = "gpu_user_annotation"
_FEWEST = 3


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time from one iteration to the next in ms, of the fastest process; from so many `steps` of so many `processes`."""

    step_ms: float
    steps: int
    processes: int


class _Event(msgspec.Struct, frozen=True):
    name: str = ""
    cat: str = ""
    ph: str = ""
    ts: float = 0.0


class _Trace(msgspec.Struct, frozen=True):
    traceEvents: list[_Event] = []  # noqa: N815 - the trace format's name


def steps_in(trace: bytes) -> list[float]:
    """When each iteration of a trace was, in its µs, in order; [] when it tells of none or is no trace.

    libkineto counts iterations by whichever kind of step there are more of, and so does this.
    """
    try:
        events = msgspec.json.decode(trace, type=_Trace, strict=False).traceEvents
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []
    kinds: dict[str, list[float]] = {kind: [] for kind in _STEP_NAMES}
    for event in events:
        if event.ph == "X" and event.cat != _OF_THE_GPU:
            for kind, begins in kinds.items():
                if event.name.startswith(kind):
                    begins.append(event.ts)
    most: list[float] = []
    for begins in kinds.values():
        most = begins if len(begins) > len(most) else most
    return sorted(most)


def step_time(begins: Iterable[Sequence[float]]) -> StepTime | None:
    """From the steps of each process (µs). Those with fewer than three say nothing; None when no process says anything.

    The fastest decides: the more iterations pass in a time, the larger a round-up must be.
    """
    telling = [steps for steps in begins if len(steps) >= _FEWEST and steps[-1] > steps[0]]
    if not telling:
        return None
    return StepTime(
        step_ms=min((steps[-1] - steps[0]) / (len(steps) - 1) for steps in telling) / 1000,
        steps=sum(map(len, telling)),
        processes=len(telling),
    )
