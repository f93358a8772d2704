"""Memory traffic and cache use by Resource Control, where it is mounted."""

from collections.abc import Mapping

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta
from dynolog.model.metric import Kind, Metric
from dynolog.sources.resctrl import DomainUse, ResctrlReader

Uses = Mapping[tuple[str, int], DomainUse]

METRICS = (
    Metric(
        name="resctrl_membw_bytes_per_s",
        kind=Kind.RATE,
        unit="By/s",
        description="Bytes a second between the last-level caches and memory, by Resource Control (MBM)",
    ),
    Metric(
        name="resctrl_membw_local_bytes_per_s",
        kind=Kind.RATE,
        unit="By/s",
        description="Bytes a second between the last-level caches and the memory of their own node, by Resource Control (MBM)",
    ),
    Metric(
        name="resctrl_llc_occupied_bytes",
        kind=Kind.GAUGE,
        unit="By",
        description="Bytes in use in the last-level caches, by Resource Control",
    ),
)


class ResctrlCollector:
    """Sums over control groups and caches. A sum of which a part is not known is not given."""

    def __init__(self, context: Context) -> None:
        self._reader = ResctrlReader(context.host)

    def read(self) -> Uses:
        """One reading."""
        return self._reader.read()

    def compute(self, before: Uses, after: Uses, elapsed_s: float) -> Values:
        """Growth in the groups that both readings have: one that was made in between has moved little yet."""
        values: Values = {}
        if elapsed_s > 0:
            for name, field in (
                ("resctrl_membw_bytes_per_s", "moved_bytes"),
                ("resctrl_membw_local_bytes_per_s", "local_bytes"),
            ):
                moved = _grown(before, after, field)
                if moved is not None:
                    values[name] = moved / elapsed_s
        occupied = [use.occupied_bytes for use in after.values()]
        known = [count for count in occupied if count is not None]
        if len(known) == len(occupied):
            values["resctrl_llc_occupied_bytes"] = sum(known)
        return values


def _grown(before: Uses, after: Uses, field: str) -> int | None:
    deltas = [
        counter_delta(getattr(before[key], field), getattr(use, field)) for key, use in after.items() if key in before
    ]
    known = [delta for delta in deltas if delta is not None]
    return sum(known) if known and len(known) == len(deltas) else None


SPEC = CollectorSpec(
    name="resctrl",
    summary="memory traffic and cache use by Resource Control",
    needs="/sys/fs/resctrl",
    factory=ResctrlCollector,
    metrics=METRICS,
)
