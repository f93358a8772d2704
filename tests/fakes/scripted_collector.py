"""Collectors whose reads a test decides."""

import threading
from collections.abc import Callable

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from fakes.stepped_time import SteppedTime


def nothing() -> None:
    """A read that just works."""


class ScriptedCollector:
    """Counts up by one a read. `on_read` is called in each read and may raise or hang; `on_compute` likewise."""

    def __init__(self, name: str, time: SteppedTime, shortest_interval_s: float = 0.0) -> None:
        self.name = name
        self.on_make: Callable[[], None] = nothing
        self.on_read: Callable[[], None] = nothing
        self.on_compute: Callable[[], None] = nothing
        self.made = 0
        self.read_wall_ns: list[int] = []
        self.read_monotonic_ns: list[int] = []
        self.context: Context | None = None
        self._time = time
        self.spec = CollectorSpec(
            name=name,
            summary="scripted",
            needs="a test",
            factory=self._make,
            metrics=(
                Metric(name=f"{name}_reads", kind=Kind.DELTA, unit="1", description="reads"),
                Metric(name=f"{name}_elapsed_s", kind=Kind.GAUGE, unit="s", description="elapsed"),
            ),
            shortest_interval_s=shortest_interval_s,
        )

    def _make(self, context: Context) -> "ScriptedCollector":
        self.made += 1
        self.context = context
        self.on_make()
        return self

    def read(self) -> int:
        self.read_wall_ns.append(self._time.wall_ns())
        self.read_monotonic_ns.append(self._time.monotonic_ns())
        self.on_read()
        return len(self.read_wall_ns)

    def compute(self, before: int, after: int, elapsed_s: float) -> Values:
        self.on_compute()
        return {f"{self.name}_reads": after - before, f"{self.name}_elapsed_s": elapsed_s}


class Hang:
    """A read that does not return until it is released; only the first one hangs."""

    def __init__(self, time: SteppedTime) -> None:
        self._time = time
        self._release = threading.Event()
        self._entered = False

    def __call__(self) -> None:
        if self._entered:
            return
        self._entered = True
        self._time.block()
        assert self._release.wait(30), "nobody released the hang"
        self._time.unblock()

    def release(self) -> None:
        self._release.set()
