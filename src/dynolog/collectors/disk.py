"""I/O of block devices: bytes, operations, time, queue and utilisation."""

from dynolog.collectors.counter_rows import CounterRows
from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.flag import Flag
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.diskstats import COLUMNS, SECTOR_BYTES, Disk, DiskStatsReader


def _delta(name: str, unit: str, description: str) -> Metric:
    return Metric(name=name, scope=Scope.DISK, kind=Kind.DELTA, unit=unit, description=description)


def _level(name: str, unit: str, description: str) -> Metric:
    return Metric(name=name, scope=Scope.DISK, kind=Kind.GAUGE, unit=unit, description=description)


# One for each of COLUMNS, in their order; sectors are given as bytes.
_COUNTERS = (
    _delta("disk_read_ops", "{operation}", "Reads completed by a disk"),
    _delta("disk_read_merges", "{operation}", "Reads merged into an adjacent one before they reached a disk"),
    _delta("disk_read_bytes", "By", "Bytes read from a disk"),
    _delta("disk_read_ms", "ms", "Time of all reads of a disk together, queue included"),
    _delta("disk_write_ops", "{operation}", "Writes completed by a disk"),
    _delta("disk_write_merges", "{operation}", "Writes merged into an adjacent one before they reached a disk"),
    _delta("disk_write_bytes", "By", "Bytes written to a disk"),
    _delta("disk_write_ms", "ms", "Time of all writes of a disk together, queue included"),
    _delta("disk_busy_ms", "ms", "Time in which a disk had at least one request"),
    _delta("disk_queue_ms", "ms", "Time of all requests of a disk together, those still in flight included"),
    _delta("disk_discard_ops", "{operation}", "Discards (trim) completed by a disk"),
    _delta("disk_discard_merges", "{operation}", "Discards merged into an adjacent one before they reached a disk"),
    _delta("disk_discard_bytes", "By", "Bytes discarded (trimmed) on a disk"),
    _delta("disk_discard_ms", "ms", "Time of all discards of a disk together, queue included"),
    _delta("disk_flush_ops", "{operation}", "Cache flushes completed by a disk"),
    _delta("disk_flush_ms", "ms", "Time of all cache flushes of a disk together"),
)
METRICS = (
    *_COUNTERS,
    _level("disk_in_flight", "{request}", "Requests that a disk is working on at the time of the record"),
    _level("disk_queue_length", "{request}", "Mean number of requests queued or in flight at a disk over the interval"),
    _level(
        "disk_read_latency_ms", "ms", "Mean time of the reads that a disk completed in the interval, queue included"
    ),
    _level(
        "disk_write_latency_ms", "ms", "Mean time of the writes that a disk completed in the interval, queue included"
    ),
    Metric(
        name="disk_util",
        scope=Scope.DISK,
        kind=Kind.RATIO,
        unit="%",
        description="Share of the interval in which a disk had at least one request; 100 does not mean that a parallel device is full",
    ),
)
PARTITIONS = Flag(
    name="disk_partitions",
    default=False,
    help="measure partitions as well as whole disks",
    section="collectors",
    live=True,
)
EXCLUDE = Flag(
    name="disk_exclude_prefixes",
    default="loop,ram,zram,fd,sr",
    help="leave out block devices whose names start with one of these, a comma list",
    section="collectors",
    live=True,
)

_SECTORS = (_READ_SECTORS, _WRITE_SECTORS, _DISCARD_SECTORS) = tuple(
    map(COLUMNS.index, ("read_sectors", "write_sectors", "discard_sectors"))
)
# The kernel keeps times as 32 bits of milliseconds: each wraps by itself, on a busy disk every few days.
_TIMES = frozenset(column for column, name in enumerate(COLUMNS) if name.endswith("_ms"))
_READS, _READ_MS, _WRITES, _WRITE_MS, _BUSY_MS, _QUEUE_MS = map(
    COLUMNS.index, ("reads", "read_ms", "writes", "write_ms", "busy_ms", "queue_ms")
)
_SECTORS_PER_S_LIMIT = 1e12 / SECTOR_BYTES
_OPERATIONS_PER_S_LIMIT = 1e10
_LOWEST_LIMIT = min(_SECTORS_PER_S_LIMIT, _OPERATIONS_PER_S_LIMIT)


class DiskCollector:
    """Deltas of two readings of `/proc/diskstats`."""

    def __init__(self, context: Context) -> None:
        self._settings = context.settings
        self._reader = DiskStatsReader(context.host)
        self._rows = CounterRows(own=_TIMES)
        self._keys: dict[str, tuple[str, ...]] = {}

    def read(self) -> dict[str, Disk]:
        """One reading of the wanted devices, by name."""
        return self._reader.read(self._settings.on(PARTITIONS.name), self._settings.names(EXCLUDE.name))

    def compute(self, before: dict[str, Disk], after: dict[str, Disk], elapsed_s: float) -> Values:
        """Deltas of the devices that both readings have under the same name and number."""
        values: Values = {}
        for name, new in after.items():
            keys = self._keys.get(name) or self._make_keys(name)
            if new.in_flight is not None:
                values[keys[16]] = new.in_flight
            old = before.get(name)
            if old is not None and old.number == new.number:
                grown = self._rows.growth(name, old.counters, new.counters)
                if grown is not None and _is_possible(grown, elapsed_s):
                    _add_disk(values, keys, grown, elapsed_s * 1000)
        return values

    def _make_keys(self, name: str) -> tuple[str, ...]:
        if len(self._keys) > 4096:  # devices that come and go must not fill memory
            self._keys.clear()
        keys = self._keys[name] = tuple(metric.key(name) for metric in METRICS)
        return keys


def _is_possible(grown: list[int], elapsed_s: float) -> bool:
    # A second of slack, because a long request is counted when it ends.
    slack_s = elapsed_s + 1
    if max(grown) <= _LOWEST_LIMIT * slack_s:
        return True
    return (
        max(grown[column] for column in _SECTORS if column < len(grown)) <= _SECTORS_PER_S_LIMIT * slack_s
        and max(grown[_READS], grown[_WRITES]) <= _OPERATIONS_PER_S_LIMIT * slack_s
    )


def _add_disk(values: Values, keys: tuple[str, ...], grown: list[int], elapsed_ms: float) -> None:
    busy_ms, queue_ms, read_ms, write_ms = grown[_BUSY_MS], grown[_QUEUE_MS], grown[_READ_MS], grown[_WRITE_MS]
    # The kernel adds a long request's busy time at its end, so an interval may hold a little more than itself.
    busy_known = 0 <= busy_ms <= 1.1 * elapsed_ms + 1000
    grown[_READ_SECTORS] *= SECTOR_BYTES
    grown[_WRITE_SECTORS] *= SECTOR_BYTES
    if len(grown) > _DISCARD_SECTORS:
        grown[_DISCARD_SECTORS] *= SECTOR_BYTES
    values.update(zip(keys, grown, strict=False))
    if min(grown) < 0 or not busy_known:
        for column in _TIMES:
            if column < len(grown) and (grown[column] < 0 or (column == _BUSY_MS and not busy_known)):
                del values[keys[column]]
    if elapsed_ms > 0:
        if queue_ms >= 0:
            values[keys[17]] = queue_ms / elapsed_ms
        if busy_known:
            values[keys[20]] = min(100 * busy_ms / elapsed_ms, 100.0)
    if grown[_READS] > 0 and read_ms >= 0:
        values[keys[18]] = read_ms / grown[_READS]
    if grown[_WRITES] > 0 and write_ms >= 0:
        values[keys[19]] = write_ms / grown[_WRITES]


SPEC = CollectorSpec(
    name="disk",
    summary="I/O of block devices",
    needs="/proc/diskstats",
    factory=DiskCollector,
    metrics=METRICS,
    flags=(PARTITIONS, EXCLUDE),
)
