"""The daemon with one collector more, whose read never returns: what everything else must not notice."""

import sys
import threading

from dynolog.collectors import registry
from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric


class HungCollector:
    """Reads once, then never returns."""

    def __init__(self, context: Context) -> None:
        self._reads = 0

    def read(self) -> int:
        self._reads += 1
        if self._reads > 1:
            threading.Event().wait()
        return self._reads

    def compute(self, before: int, after: int, elapsed_s: float) -> Values:
        return {}


registry.COLLECTORS = (
    CollectorSpec(
        name="hung",
        summary="hangs",
        needs="nothing",
        factory=HungCollector,
        metrics=(Metric(name="hung", kind=Kind.GAUGE, unit="1", description="never there"),),
    ),
    *registry.COLLECTORS,
)

if __name__ == "__main__":
    from dynolog.daemon.main import main

    sys.exit(main())
