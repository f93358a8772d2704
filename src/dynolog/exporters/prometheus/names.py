"""What a metric of the catalogue is called in Prometheus, in the two styles of `--prometheus_names`.

`dynolog`: the names of the log, all of them gauges, with the device as a label. `standard`: base units, suffixes and counters as
the Prometheus conventions want them, derived by rule; where a rule gives no good name, `_STEMS` says it.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from dynolog.model.metric import Kind, Metric, Scope


class Type(StrEnum):
    """The Prometheus type of a family."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one name. `sample` is the name on their lines, `name` the one in OpenMetrics headers (without `_total`, `_info`).

    A value of the catalogue times `multiply`, divided by `divide`, is a value of the family. `label` names what the instance is
    ("" for the host); for an info it names the text.
    """

    name: str
    type: Type
    help: str
    unit: str = ""
    label: str = ""
    multiply: int = 1
    divide: int = 1

    @property
    def sample(self) -> str:
        """`x_total` for a counter, `x_info` for an info, else the name."""
        match self.type:
            case Type.COUNTER:
                return f"{self.name}_total"
            case Type.INFO:
                return f"{self.name}_info"
        return self.name


# Label of what a value is about, in the two styles.
DYNOLOG_LABELS = {
    Scope.HOST: "",
    Scope.GPU: "",  # a GPU's labels come with its record
    Scope.CPU: "cpu",
    Scope.NODE: "node",
    Scope.NIC: "net",
    Scope.DISK: "disk",
    Scope.FILESYSTEM: "mountpoint",
    Scope.RDMA: "rdma",
    Scope.SENSOR: "sensor",
    Scope.MEMORY_CONTROLLER: "controller",
    Scope.PCI: "pci",
    Scope.COLLECTOR: "collector",
    Scope.EXPORTER: "exporter",
    Scope.SOCKET: "socket",
    Scope.CORE_TYPE: "core_type",
    Scope.EVENT: "event",
    Scope.CGROUP: "cgroup",
    Scope.XID: "xid",
    Scope.GPU_LINK: "link",
    Scope.GPU_REASON: "reason",
    Scope.ETHTOOL: "net",
}
STANDARD_LABELS = {
    **DYNOLOG_LABELS,
    Scope.NIC: "device",
    Scope.DISK: "device",
    Scope.RDMA: "device",
    Scope.PCI: "device",
    Scope.ETHTOOL: "device",
}

# Suffix, multiplier and divisor of a unit; a unit in braces counts things, which the name says already.
_UNITS: dict[str, tuple[str, int, int]] = {
    "By": ("bytes", 1, 1),
    "s": ("seconds", 1, 1),
    "ms": ("seconds", 1, 1_000),
    "us": ("seconds", 1, 1_000_000),
    "ns": ("seconds", 1, 1_000_000_000),
    "%": ("ratio", 1, 100),
    "MHz": ("hertz", 1_000_000, 1),
    "Mbit/s": ("bytes_per_second", 125_000, 1),
    "Gbit/s": ("bytes_per_second", 125_000_000, 1),
    "{four_bytes}": ("bytes", 4, 1),
    "By/s": ("bytes_per_second", 1, 1),
    "J": ("joules", 1, 1),
    "W": ("watts", 1, 1),
    "Cel": ("celsius", 1, 1),
    "{revolution}/min": ("rpm", 1, 1),
}
# Units at the end of a catalogue name, which the suffix of the base unit replaces.
_UNIT_WORDS = frozenset(
    ("bytes", "ms", "us", "ns", "pct", "mhz", "mbps", "gbps", "celsius", "rpm", "watts", "joules", "seconds", "ratio")
)
_WORDS = {
    "mem": "memory",
    "util": "utilization",
    "ops": "operations",
    "segs": "segments",
    "estab": "established",
    "retrans": "retransmitted",
    "advs": "advertisements",
    "bw": "bandwidth",
    "fds": "file_descriptors",
}
_DIRECTIONS = {"rx": "receive", "tx": "transmit", "rcv": "receive", "xmit": "transmit"}
_PREFIXES = {
    Scope.NIC: "network_",
    Scope.GPU: "gpu_",
    Scope.XID: "gpu_",
    Scope.GPU_LINK: "gpu_",
    Scope.GPU_REASON: "gpu_",
    Scope.RDMA: "rdma_",
    # Beside the host's metric of the same name: a sum over one family must not count a part and the whole.
    Scope.SOCKET: "socket_",
    Scope.CORE_TYPE: "core_type_",
    Scope.CGROUP: "cgroup_",
    Scope.ETHTOOL: "ethtool_",
}
_SUFFIXES = {
    Scope.NODE: "_node",
    Scope.CPU: "_cpu",
    Scope.SOCKET: "_socket",
    Scope.CORE_TYPE: "_core_type",
    Scope.CGROUP: "_cgroup",
    # Beside the same counters under the name of an RDMA port.
    Scope.ETHTOOL: "_ethtool",
}
# Where no rule gives a good name; without prefix, unit and `_total`.
_STEMS: dict[str, str] = {
    # Of TPUs; `gpu_memory_utilization` is another thing, of GPUs.
    "memory_utilization": "gpu_accelerator_memory",
    "cpu_u": "cpu_user",
    "cpu_s": "cpu_system",
    "cpu_i": "cpu_idle",
    "cpu_u_ms": "cpu_user",
    "cpu_s_ms": "cpu_system",
    "cpu_n_ms": "cpu_nice",
    "cpu_w_ms": "cpu_iowait",
    "cpu_x_ms": "cpu_irq",
    "cpu_y_ms": "cpu_softirq",
    "cpu_z_ms": "cpu_steal",
    "uptime": "host_uptime",
    "boot_id": "boot",
    "tcp_syn_retrans": "tcp_syn_retransmitted_segments",
    "tcp_fast_retrans": "tcp_fast_retransmitted_segments",
    "tcp_lost_retrans": "tcp_lost_retransmitted_segments",
    "hugepages_total": "hugepages",
    "threads_total": "threads",
    "mips": "instructions_per_second",
    "mega_cycles_per_second": "cycles_per_second",
    "membw_read_bytes_per_s": "memory_read_bandwidth",
    "membw_write_bytes_per_s": "memory_write_bandwidth",
    "membw_bytes_per_s": "memory_bandwidth",
    "dynolog_cpu_pct": "daemon_cpu",
    "dynolog_rss_bytes": "daemon_resident_memory",
    "dynolog_collector_ms": "collector_last_round",
    "dynolog_exporter_sent": "exporter_sent_records",
    "dynolog_exporter_dropped": "exporter_dropped_records",
    "dynolog_exporter_queue": "exporter_queue_records",
}
_MILLIONS_PER_S = frozenset(("mips", "mega_cycles_per_second"))
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_]")


def legal(name: str) -> str:
    """`name` with `_` for every character that Prometheus does not allow in a name of a metric or label."""
    sanitised = _ILLEGAL.sub("_", name)
    return f"_{sanitised}" if not sanitised or sanitised[0].isdigit() else sanitised


def legal_label(name: str) -> str:
    """The same for a label, whose name may not begin with two underscores: those are Prometheus's own."""
    sanitised = legal(name)
    return f"_{sanitised.lstrip('_')}" if sanitised.startswith("__") else sanitised


def dynolog_family(metric: Metric) -> Family:
    """A gauge with the name of the log; values of CPUs and nodes keep apart from the host's: `cpu_u_node{node="1"}`."""
    name = legal(metric.name) + _SUFFIXES.get(metric.scope, "")
    if metric.kind is Kind.LABEL:
        return Family(name=name, type=Type.INFO, help=metric.description, label=legal_label(metric.name))
    unit = f" ({metric.unit})" if metric.unit not in ("", "1") else ""
    return Family(
        name=name, type=Type.GAUGE, help=metric.description + unit, label=DYNOLOG_LABELS.get(metric.scope, "device")
    )


def standard_family(metric: Metric) -> Family:
    """A gauge or counter in base units: `rx_bytes` of an interface is `dynolog_network_receive_bytes_total{device="eth0"}`."""
    label = STANDARD_LABELS.get(metric.scope, "device")
    if metric.kind is Kind.LABEL:
        name = legal(f"dynolog_{_stem(metric)}")
        return Family(name=name, type=Type.INFO, help=metric.description, label=legal_label(metric.name))
    suffix, multiply, divide = _unit(metric)
    stem = _stem(metric)
    name = legal(f"dynolog_{stem}" if not suffix or stem.endswith(f"_{suffix}") else f"dynolog_{stem}_{suffix}")
    return Family(
        name=name,
        type=Type.COUNTER if metric.kind is Kind.DELTA else Type.GAUGE,
        help=metric.description,
        unit=suffix,
        label=label,
        multiply=multiply,
        divide=divide,
    )


def _unit(metric: Metric) -> tuple[str, int, int]:
    if metric.name in _MILLIONS_PER_S:
        return "", 1_000_000, 1
    if metric.kind is Kind.RATIO and metric.unit == "1":
        return "ratio", 1, 1
    if metric.kind is Kind.RATE and metric.unit == "By":
        return _UNITS["By/s"]
    return _UNITS.get(metric.unit, ("", 1, 1))


def _stem(metric: Metric) -> str:
    stem = _STEMS.get(metric.name) or _stem_by_rule(metric)
    if metric.scope in (Scope.CPU, Scope.NODE) and stem.startswith("cpu_"):
        # A sum over one family must not count the host, its nodes and its CPUs together.
        return ("per_" if metric.scope is Scope.CPU else "node_") + stem
    prefix = _PREFIXES.get(metric.scope, "")
    return stem if stem.startswith(prefix) else prefix + stem


def _stem_by_rule(metric: Metric) -> str:
    name = metric.name
    if name.startswith("dynolog_"):
        name = name.removeprefix("dynolog_")
        if metric.scope is Scope.HOST:
            name = f"daemon_{name}"
    words = name.split("_")
    if _unit(metric)[0] and words[-1] in _UNIT_WORDS:
        words.pop()
    if metric.scope in _PREFIXES:
        words = [_DIRECTIONS.get(word, word) for word in words]
    return "_".join(_WORDS.get(word, word) for word in words)


_MOST_UNDECLARED = 1024


class NameTaken(ValueError):  # noqa: N818 - it is a state of the names, said once
    """Two metrics would have one name in Prometheus."""


class Families:
    """The families of a style, by metric. Raises NameTaken when two metrics of the catalogue would share a name."""

    def __init__(self, metrics: Iterable[Metric], style: str) -> None:
        self._make = standard_family if style == "standard" else dynolog_family
        self._prefix = "dynolog_" if style == "standard" else ""
        self._by_metric: dict[tuple[str, Scope], Family] = {}
        self._undeclared: dict[str, Family | None] = {}
        self._taken: dict[str, str] = {}
        for metric in metrics:
            family = self._make(metric)
            self._take(family, f"{metric.name} ({metric.scope})")
            self._by_metric[metric.name, metric.scope] = family

    @property
    def all(self) -> tuple[Family, ...]:
        """Those of the catalogue, in its order."""
        return tuple(self._by_metric.values())

    def of(self, metric: Metric) -> Family:
        """The family of a metric of the catalogue. Raises NameTaken for one that was declared at run time and whose name is another's."""
        family = self._by_metric.get((metric.name, metric.scope))
        if family is None:
            family = self._make(metric)
            self._take(family, f"{metric.name} ({metric.scope})")
            self._by_metric[metric.name, metric.scope] = family
        return family

    def undeclared(self, key: str) -> Family | None:
        """A gauge for a key that nothing declares, with a legal name; None when that name is another's."""
        if key not in self._undeclared:
            if len(self._undeclared) >= _MOST_UNDECLARED:
                return None
            family = Family(name=legal(self._prefix + key), type=Type.GAUGE, help=f"{key} (not in the catalogue)")
            try:
                self._take(family, key)
            except NameTaken:
                self._undeclared[key] = None
                raise
            self._undeclared[key] = family
        return self._undeclared[key]

    def _take(self, family: Family, who: str) -> None:
        # OpenMetrics wants `x` to be free of other uses when there is `x_total`.
        for name in {family.name, family.sample}:
            if (other := self._taken.get(name)) is not None:
                raise NameTaken(f"{who} and {other} would both be {name} in Prometheus")
        for name in {family.name, family.sample}:
            self._taken[name] = who
