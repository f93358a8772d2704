"""Counters, links and pauses of InfiniBand and RoCE ports."""

from collections.abc import Iterable

import msgspec

from dynolog.collectors.ethtool_metrics import known_name
from dynolog.collectors.rdma_metrics import METRICS
from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta, put
from dynolog.model.flag import Flag
from dynolog.sources.ethtool import EthtoolDevice, EthtoolReader
from dynolog.sources.rdma import Link, PortReading, RdmaReader
from dynolog.sources.rdma_counters import LARGEST

DEVICES = Flag(
    name="rdma_devices",
    default="",
    help="RDMA devices to measure, a comma list of shell patterns (mlx5_*,efa*); empty: all",
    section="collectors",
    live=True,
)
_DOWN, _ACTIVE = 1, 4
Statistics = dict[str, dict[str, int]]


class RdmaSnapshot(msgspec.Struct, frozen=True):
    """One reading of the ports, and of the statistics of their network devices by the device's name."""

    ports: dict[str, PortReading]
    statistics: Statistics


class RdmaCollector:
    """Deltas of the counters of each port, under the name of the port (sources.rdma).

    What the drivers of its network devices count is added up over them: two, where the port is a bond.
    """

    def __init__(self, context: Context, device: EthtoolDevice | None = None) -> None:
        self._settings = context.settings
        self._notices = context.notices
        self._reader = RdmaReader(context.host, lambda: self._settings.names(DEVICES.name))
        self._ethtool = EthtoolReader(known_name, device)
        self._ports: frozenset[str] = frozenset()
        self._nets: frozenset[str] = frozenset()

    def read(self) -> RdmaSnapshot:
        """One reading."""
        ports = self._reader.read()
        nets = {net for port in ports.values() for net in port.net_devices}
        self._ethtool.keep_only(nets)
        self._take_back(frozenset(ports), frozenset(nets))
        for name, port in ports.items():
            self._say_refused(name, port.refused)
        return RdmaSnapshot(ports, self._statistics(nets))

    def _take_back(self, ports: frozenset[str], nets: frozenset[str]) -> None:
        """What was said of a port or network device that has gone since."""
        for key in (
            *(f"{kind} {port}" for port in self._ports - ports for kind in ("saturated", "refused")),
            *(f"net {net}" for net in self._nets - nets),
        ):
            self._notices.say(key, "")
        self._ports, self._nets = ports, nets

    def _statistics(self, nets: Iterable[str]) -> Statistics:
        found: Statistics = {}
        for net in sorted(nets):
            try:
                found[net] = self._ethtool.read(net)
            except OSError as error:
                reason = error.strerror or str(error)
                self._notices.say(f"net {net}", f"no driver statistics of {net} in this network namespace: {reason}")
            else:
                self._notices.say(f"net {net}", "")
        return found

    def compute(self, before: RdmaSnapshot, after: RdmaSnapshot, elapsed_s: float) -> Values:
        """Growth on the ports that both readings have; links as they are."""
        del elapsed_s
        values: Values = {}
        for name, new in after.ports.items():
            _add_link(values, name, new.link)
            if old := before.ports.get(name):
                self._add_counters(values, name, old.counters, new.counters)
                if old.net_devices == new.net_devices:
                    sums = _grown_together(new.net_devices, before.statistics, after.statistics)
                    values.update((f"{name}.{statistic}", grown) for statistic, grown in sums.items())
        return values

    def _add_counters(self, values: Values, port: str, before: dict[str, int], after: dict[str, int]) -> None:
        stuck = []
        for name, new in after.items():
            if new != LARGEST.get(name):
                put(values, f"{port}.{name}", counter_delta(before.get(name), new))
            elif before.get(name) == new:
                stuck.append(name)
        told = f"{port}: {', '.join(sorted(stuck))} at the largest value, where it counts no more; reset it with `perfquery -R`"
        self._notices.say(f"saturated {port}", told if stuck else "")

    def _say_refused(self, port: str, count: int) -> None:
        told = f"{port}: the files of {count} counters cannot be read or have no number; tried again once an hour"
        self._notices.say(f"refused {port}", told if count else "")


def _add_link(values: Values, port: str, link: Link) -> None:
    put(values, f"{port}.port_state", link.state)
    put(values, f"{port}.port_phys_state", link.physical_state)
    if link.state is not None:
        values[f"{port}.port_up"] = int(link.state == _ACTIVE)
        if link.state > _DOWN:
            # A port that is down goes on telling a speed.
            put(values, f"{port}.port_rate_gbps", link.rate_gbps)
            put(values, f"{port}.port_width", link.lanes)


def _grown_together(nets: tuple[str, ...], before: Statistics, after: Statistics) -> dict[str, int]:
    """Growth of each statistic over all of `nets`; of one that a device has and that cannot be known, none: it would be a part."""
    sums: dict[str, int] = {}
    unknown: set[str] = set()
    for net in nets:
        if net not in after:
            return {}
        old = before.get(net, {})
        for name, new in after[net].items():
            if (grown := counter_delta(old.get(name), new)) is None:
                unknown.add(name)
            else:
                sums[name] = sums.get(name, 0) + grown
    return {name: grown for name, grown in sums.items() if name not in unknown}


SPEC = CollectorSpec(
    name="rdma",
    summary="InfiniBand and RoCE ports: traffic, errors, congestion, links, pauses",
    needs="/sys/class/infiniband, ethtool statistics",
    factory=RdmaCollector,
    metrics=METRICS,
    flags=(DEVICES,),
    on_by_default=False,
    own_enable_flag="enable_rdma_monitor",
    own_interval_flag="rdma_monitor_reporting_interval_s",
    default_interval_s=60.0,
)
