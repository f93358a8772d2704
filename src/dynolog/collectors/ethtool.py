"""Pauses, discards and errors that the drivers of chosen network devices count."""

import fnmatch
import re

from dynolog.collectors.ethtool_metrics import ethtool_metrics, known_name
from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta, put
from dynolog.model.flag import Flag
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.ethtool import EthtoolDevice, EthtoolReader

INTERFACES = Flag(
    name="ethtool_interfaces",
    default="",
    help="network devices whose drivers' statistics are measured, a comma list of shell patterns (eth*,ens1f0np0); those of RDMA ports "
    "come with --enable_rdma_monitor",
    section="collectors",
    live=True,
)
COUNTERS = Flag(
    name="ethtool_counters",
    default="",
    help="more of the drivers' counters to measure on these, a comma list of shell patterns of the names that `ethtool -S` prints; "
    "they are called ethtool_NAME",
    section="collectors",
)
_ILLEGAL = re.compile(r"[^a-z0-9]+")
Statistics = dict[str, dict[str, int]]


class EthtoolCollector:
    """Deltas of the statistics. The devices are those of the daemon's network namespace."""

    def __init__(self, context: Context, device: EthtoolDevice | None = None) -> None:
        self._settings = context.settings
        self._notices = context.notices
        self._declare = context.declare
        self._more = context.settings.names(COUNTERS.name)
        self._ethtool = EthtoolReader(self._name_of, device)
        self._chosen: set[str] = set()

    def read(self) -> Statistics:
        """By name of the network device; {} while none is asked for."""
        patterns = self._settings.names(INTERFACES.name)
        if not patterns:
            return {}
        chosen = {name for name in interfaces() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
        self._notices.say("none", "" if chosen else f"no network device matches --{INTERFACES.name}")
        self._ethtool.keep_only(chosen)
        for name in self._chosen - chosen:  # it has gone, and what was said of it is over
            self._notices.say(f"net {name}", "")
        self._chosen = chosen
        found: Statistics = {}
        for name in sorted(chosen):
            try:
                found[name] = self._ethtool.read(name)
            except OSError as error:
                self._notices.say(f"net {name}", f"no driver statistics of {name}: {error.strerror or error}")
            else:
                self._notices.say(f"net {name}", "")
        return found

    def compute(self, before: Statistics, after: Statistics, elapsed_s: float) -> Values:
        """Growth on the devices that both readings have."""
        del elapsed_s
        values: Values = {}
        for device, statistics in after.items():
            old = before.get(device, {})
            for name, new in statistics.items():
                put(values, f"{name}.{device}", counter_delta(old.get(name), new))
        return values

    def _name_of(self, statistic: str) -> str:
        if name := known_name(statistic):
            return name
        if not any(fnmatch.fnmatchcase(statistic, pattern) for pattern in self._more):
            return ""
        name = "ethtool_" + _ILLEGAL.sub("_", statistic.lower()).strip("_")
        text = f"What the driver counts as {statistic}"
        self._declare((Metric(name=name, scope=Scope.ETHTOOL, kind=Kind.DELTA, unit="{count}", description=text),))
        return name


def interfaces() -> list[str]:
    """Names of the network devices of this process's network namespace, without a look at sysfs, which may show another's."""
    import socket  # noqa: PLC0415 - only where the collector is used

    return [name for _, name in socket.if_nameindex()]


SPEC = CollectorSpec(
    name="ethtool",
    summary="what drivers of network devices count: pauses, discards, errors of the physical layer (with --ethtool_interfaces)",
    needs="ethtool statistics",
    factory=EthtoolCollector,
    metrics=ethtool_metrics(Scope.ETHTOOL, "of a network device"),
    flags=(INTERFACES, COUNTERS),
)
