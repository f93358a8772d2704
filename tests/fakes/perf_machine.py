"""A machine with a fake kernel under the perf collector: trees of files, counters by the names of events, time that passes."""

from collections.abc import Mapping

from dynolog.collectors.perf import PerfCollector
from dynolog.collectors.spec import Values
from dynolog.model.flag import FlagValue
from dynolog.sources.pmu_devices import discover
from dynolog.sources.pmu_events import parse_event
from dynolog.sources.pmu_tables import table_of
from fakes.collector_context import HostTree
from fakes.perf_kernel import FakePerfKernel
from fakes.pmu_trees import PmuTree

FORMATS = {
    "event": "config:0-7,32-35",
    "umask": "config:8-15",
    "inv": "config:23",
    "cmask": "config:24-31",
    "edge": "config:18",
}
SLOTS = {
    "topdown-retiring": "event=0xc2,umask=0x1",
    "topdown-bad-spec": "event=0x73,umask=0x1",
    "topdown-fe-bound": "event=0x71,umask=0x1",
    "topdown-be-bound": "event=0x74,umask=0x1",
}


class PerfMachine:
    """`rates` are counts in a second on one CPU, by event as a person writes it; whatever is not among them does not exist."""

    def __init__(self, tree: HostTree, rates: Mapping[str, float] | None = None, **flags: FlagValue) -> None:
        self.tree = tree
        self.pmus = PmuTree(tree.root)
        self.kernel = FakePerfKernel({})
        self.exist(rates or {})
        self.flags = flags
        self.collector = PerfCollector(tree.context(**flags), self.kernel, self.kernel.monotonic_ns)

    def exist(self, rates: Mapping[str, float]) -> None:
        """From now on the kernel counts these."""
        devices = discover(self.tree.context().host)
        named = table_of(devices.host).named
        for text, rate in rates.items():
            for spec in parse_event(text, devices, named):
                self.kernel.rates[spec.type, spec.config] = rate

    def measure(self, seconds: float = 2.0) -> Values:
        """Two readings with `seconds` between them."""
        before = self.collector.read()
        self.kernel.advance(seconds)
        return self.collector.compute(before, self.collector.read(), seconds)


def one_core_pmu(tree: HostTree, online: str = "0-3") -> None:
    """A server with one kind of cores, of a model that no table knows."""
    pmus = PmuTree(tree.root)
    pmus.every_kernel_has(online)
    pmus.pmu("cpu", 4, FORMATS, {})


def hybrid(tree: HostTree, vendor: str = "GenuineIntel", family: int = 6, model: int = 143) -> None:
    """Cores of two types, 0-1 and 2: a processor that was never built, so that one machine has every event."""
    pmus = PmuTree(tree.root)
    pmus.every_kernel_has("0-2")
    pmus.intel_or_amd(vendor, family, model)
    events = SLOTS if vendor == "GenuineIntel" else {}
    pmus.pmu("cpu_core", 4, FORMATS, events, cpus="0-1")
    pmus.pmu("cpu_atom", 10, FORMATS, events, cpus="2")
