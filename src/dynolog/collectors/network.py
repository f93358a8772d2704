"""Traffic of network interfaces, and the speed and state of their links."""

import time

import msgspec

from dynolog.collectors.counter_rows import CounterRows
from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta
from dynolog.model.flag import Flag
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.errand import Errand
from dynolog.sources.net_dev import COLUMNS, NetDevReader, NicCounters
from dynolog.sources.net_link import Link, read_links

_DIRECTIONS = (("rx", "received"), ("tx", "sent"))
METRICS = (
    *(
        Metric(
            name=f"{direction}_{name}",
            scope=Scope.NIC,
            kind=Kind.DELTA,
            unit=unit,
            description=text.format(verb),
        )
        for direction, verb in _DIRECTIONS
        for name, unit, text in (
            ("bytes", "By", "Bytes {} by an interface"),
            ("packets", "{packet}", "Packets {} by an interface"),
            ("errors", "{error}", "Packets that were not {} right: checksum, frame, carrier and the like"),
            ("drops", "{packet}", "Packets that should have been {} and were dropped for want of room or of a taker"),
        )
    ),
    *(
        Metric(
            name=f"{direction}_util",
            scope=Scope.NIC,
            kind=Kind.RATIO,
            unit="%",
            description=f"Bits {verb} as a share of the link speed, for physical interfaces that know it",
        )
        for direction, verb in _DIRECTIONS
    ),
    Metric(
        name="link_speed_mbps",
        scope=Scope.NIC,
        kind=Kind.GAUGE,
        unit="Mbit/s",
        description="Negotiated speed of a physical interface or bond",
    ),
    Metric(
        name="link_up",
        scope=Scope.NIC,
        kind=Kind.GAUGE,
        unit="1",
        description="1 when the link of a physical interface or bond is up, else 0",
    ),
    Metric(
        name="carrier_changes",
        scope=Scope.NIC,
        kind=Kind.DELTA,
        unit="{change}",
        description="Times the link of a physical interface or bond came or went (looked at every 30 s)",
    ),
)
FILTER = Flag(
    name="filter_nic_interfaces",
    default=False,
    help="measure only the network interfaces whose names start with one of --allow_interface_prefixes",
    section="collectors",
    live=True,
)
PREFIXES = Flag(
    name="allow_interface_prefixes",
    default="eno,ens,enp,enx,eth",
    help="with --filter_nic_interfaces, the beginnings of interface names to measure, a comma list",
    section="collectors",
    live=True,
)

# A link may carry more than it says (a paravirtual driver names a nominal speed), but not eight times as much; and no
# interface known carries 1 TB/s. What is above is a broken counter.
_ABOVE_SPEED = 8
_BYTES_PER_S_LIMIT = 1e12
_BYTES_PER_MBIT = 125_000
_RX_BYTES, _TX_BYTES = COLUMNS.index("rx_bytes"), COLUMNS.index("tx_bytes")


class NetworkSnapshot(msgspec.Struct, frozen=True):
    """One reading of the counters, and the links as they were last seen."""

    devices: dict[str, NicCounters]
    links: dict[str, Link]


class NetworkCollector:
    """Deltas of two readings of `/proc/net/dev`; links are looked at aside, because the kernel may let that wait."""

    LINKS_EVERY_S = 30.0
    LINKS_EVERY_S_WHEN_CHANGED = 5.0
    LINKS_WAIT_S = 0.02
    LINKS_VALID_S = 120.0

    def __init__(self, context: Context) -> None:
        self._settings = context.settings
        self._reader = NetDevReader(context.host)
        self._rows = CounterRows()
        self._keys: dict[str, tuple[str, ...]] = {}
        self._names: tuple[str, ...] = ()
        self._look = Errand("network-links", lambda: read_links(context.host, self._names))
        self._links: dict[str, Link] = {}
        self._links_started_s = float("-inf")
        self._links_seen_s = float("-inf")

    def read(self) -> NetworkSnapshot:
        """One reading; the filter comes before any other file is opened."""
        prefixes = self._settings.names(PREFIXES.name) if self._settings.on(FILTER.name) else ()
        devices = self._reader.read(prefixes)
        return NetworkSnapshot(devices, self._links_of(tuple(devices)))

    def _links_of(self, names: tuple[str, ...]) -> dict[str, Link]:
        now_s = time.monotonic()
        # Containers come and go: a new interface is not worth a look at all of them every second.
        after_s = self.LINKS_EVERY_S if names == self._names else self.LINKS_EVERY_S_WHEN_CHANGED
        due = now_s - self._links_started_s >= after_s
        if due and not self._look.running:
            self._names = names
            self._links_started_s = now_s
            self._look.start()
            self._look.wait(self.LINKS_WAIT_S)
        if (links := self._look.take()) is not None:
            self._links = links
            self._links_seen_s = now_s
        elif now_s - self._links_seen_s > self.LINKS_VALID_S:
            self._links = {}
        return self._links

    def compute(self, before: NetworkSnapshot, after: NetworkSnapshot, elapsed_s: float) -> Values:
        """Deltas of the interfaces that both readings have, utilisation where the speed is known."""
        values: Values = {}
        for name, new in after.devices.items():
            link = after.links.get(name)
            old = before.devices.get(name)
            speed = link.speed_mbps if link is not None else None
            if old is not None and (grown := self._rows.growth(name, old, new)) is not None:
                self._add_traffic(values, name, grown, speed, elapsed_s)
            if link is not None:
                _add_link(values, name, before.links.get(name), link)
        return values

    def _add_traffic(
        self, values: Values, name: str, grown: list[int], speed_mbps: int | None, elapsed_s: float
    ) -> None:
        speed = _BYTES_PER_S_LIMIT if speed_mbps is None else speed_mbps * _BYTES_PER_MBIT
        possible = speed * elapsed_s
        # A second of slack: what waited in a ring is counted at once.
        if max(grown) > (possible + speed if speed_mbps is None else _ABOVE_SPEED * (possible + speed)):
            return
        values.update(zip(self._keys_of(name), grown, strict=True))
        if speed_mbps is not None and possible > 0:
            values[f"rx_util.{name}"] = 100 * grown[_RX_BYTES] / possible
            values[f"tx_util.{name}"] = 100 * grown[_TX_BYTES] / possible

    def _keys_of(self, name: str) -> tuple[str, ...]:
        keys = self._keys.get(name)
        if keys is None:
            if len(self._keys) > 4096:  # containers come and go: their names must not fill memory
                self._keys.clear()
            keys = self._keys[name] = tuple(f"{column}.{name}" for column in COLUMNS)
        return keys


def _add_link(values: Values, name: str, before: Link | None, after: Link) -> None:
    if after.speed_mbps is not None:
        values[f"link_speed_mbps.{name}"] = after.speed_mbps
    if after.up is not None:
        values[f"link_up.{name}"] = after.up
    changes = counter_delta(before.carrier_changes if before else None, after.carrier_changes)
    if changes is not None:
        values[f"carrier_changes.{name}"] = changes


SPEC = CollectorSpec(
    name="network",
    summary="traffic, speed and state of network interfaces",
    needs="/proc/net/dev, /sys/class/net",
    factory=NetworkCollector,
    metrics=METRICS,
    flags=(FILTER, PREFIXES),
)
