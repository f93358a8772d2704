"""Memory of each NUMA node, and whether allocations got the node they wanted."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.numa import Node, NumaReader

_MEMORY = (
    ("MemTotal", "numa_mem_total_bytes", "Memory of a NUMA node"),
    ("MemFree", "numa_mem_free_bytes", "Memory of a NUMA node that nothing uses"),
    ("MemUsed", "numa_mem_used_bytes", "Memory of a NUMA node in use, page cache included"),
)
_COUNTERS = (
    ("numa_hit", "numa_hit_pages", "Pages allocated on this node as wanted"),
    ("numa_miss", "numa_miss_pages", "Pages allocated on this node although another was wanted"),
    ("numa_foreign", "numa_foreign_pages", "Pages wanted on this node and allocated on another"),
    ("local_node", "numa_local_pages", "Pages allocated on this node by its own CPUs"),
    ("other_node", "numa_other_pages", "Pages allocated on this node by CPUs of other nodes"),
)
METRICS = (
    *(Metric(name=name, scope=Scope.NODE, kind=Kind.GAUGE, unit="By", description=text) for _, name, text in _MEMORY),
    *(
        Metric(name=name, scope=Scope.NODE, kind=Kind.DELTA, unit="{page}", description=text)
        for _, name, text in _COUNTERS
    ),
)


class NumaCollector:
    """Gauges and deltas of each node."""

    def __init__(self, context: Context) -> None:
        self._reader = NumaReader(context.host)

    def read(self) -> dict[int, Node]:
        """One reading."""
        return self._reader.read()

    def compute(self, before: dict[int, Node], after: dict[int, Node], elapsed_s: float) -> Values:
        """Levels, and growth on the nodes that both readings have."""
        del elapsed_s
        values: Values = {}
        for node, new in after.items():
            for field, name, _ in _MEMORY:
                if field in new.memory_kb:
                    values[f"{name}_node{node}"] = new.memory_kb[field] * 1024
            old = before.get(node)
            if old is None:
                continue
            for field, name, _ in _COUNTERS:
                if new.counters.get(field, -1) >= old.counters.get(field, 1 << 64):
                    values[f"{name}_node{node}"] = new.counters[field] - old.counters[field]
        return values


SPEC = CollectorSpec(
    name="numa",
    summary="memory of each NUMA node, and allocations that missed their node",
    needs="/sys/devices/system/node",
    factory=NumaCollector,
    metrics=METRICS,
)
