"""Children of the GPU source that are no processes: a test says what they answer."""

import threading
from collections.abc import Callable

from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.sources.gpu_access import OPENING_FACTOR
from dynolog.sources.gpu_child import ChildFailed
from dynolog.sources.gpu_wire import Done, Open, Pause, Reply, Request, Resume, Sample, Sampled

DEADLINE_S = 2.0


class StillClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return 1_700_000_000_000_000_000 + self.now_ns

    def move(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


class ScriptedChild:
    """Answers well unless its machine says otherwise."""

    def __init__(self, machine: "Machine", backend: str) -> None:
        self.machine = machine
        self.backend = backend
        self.closed = False
        self.is_stuck = False

    def ask(self, request: Request, deadline_s: float) -> Reply:
        call = str(type(request).__struct_config__.tag)
        self.machine.calls.append((self.backend, call))
        assert deadline_s == DEADLINE_S * (OPENING_FACTOR if isinstance(request, Open) else 1)
        self.machine.hold.wait(30)
        answer = self.machine.answers.get((self.backend, call))
        if isinstance(answer, ChildFailed):
            self.is_stuck = self.machine.sticks
            raise answer
        if answer is not None:
            return answer
        match request:
            case Sample():
                return Sampled(self.machine.sample(self.backend), self.machine.clock.monotonic_ns())
            case Pause() | Resume():
                return Done(ok=True)
            case _:
                return Done(ok=True)

    def close(self) -> None:
        self.closed = True

    def kill(self) -> None:
        self.machine.hold.set()


class Machine:
    """What the children of all backends find. `answers` by backend and call; while `hold` is cleared, every call hangs."""

    def __init__(self, *readings: GpuReading) -> None:
        self.clock = StillClock()
        self.readings = readings
        self.answers: dict[tuple[str, str], Reply | ChildFailed] = {}
        self.calls: list[tuple[str, str]] = []
        self.children: list[ScriptedChild] = []
        self.sticks = False
        self.hold = threading.Event()
        self.hold.set()
        self.change: Callable[[GpuSample], GpuSample] = lambda sample: sample

    def make_child(self, backend: str) -> ScriptedChild:
        self.children.append(ScriptedChild(self, backend))
        return self.children[-1]

    def sample(self, backend: str) -> GpuSample:
        seen = sum(reading.is_up for reading in self.readings)
        return self.change(GpuSample(backend=backend, readings=self.readings, expected=len(self.readings), seen=seen))

    def opened(self) -> list[str]:
        """The backends that were opened or tried, in order."""
        return [backend for backend, call in self.calls if call == "open"]
