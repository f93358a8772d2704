"""What a metric is, and the catalogue that every view of metrics is derived from."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """How values of a metric behave over time, and so how they may be combined."""

    GAUGE = "gauge"  # a level at the time of the record; the last one wins
    DELTA = "delta"  # what was added since the last record; sums
    RATIO = "ratio"  # a share of a whole over the interval; averages
    RATE = "rate"  # per second over the interval; averages
    LABEL = "label"  # text that identifies (boot id, GPU name); not a number


class Scope(StrEnum):
    """What one value of a metric is about; names the label and decides the key."""

    HOST = "host"
    CPU = "cpu"
    NODE = "node"  # a NUMA node
    NIC = "nic"
    DISK = "disk"
    FILESYSTEM = "filesystem"  # instance is the mount point
    RDMA = "rdma"  # instance is the InfiniBand or RoCE device
    SENSOR = "sensor"  # instance is chip and label of an hwmon or powercap sensor
    MEMORY_CONTROLLER = "memory_controller"  # instance is an EDAC controller
    PCI = "pci"  # instance is a PCI address
    COLLECTOR = "collector"  # a collector of this daemon
    EXPORTER = "exporter"  # a destination of this daemon's records
    SOCKET = "socket"  # a processor package, by number
    CORE_TYPE = "core_type"  # the cores of one kind of a hybrid processor: `core`, `atom`
    EVENT = "event"  # an event of perf, or a group of them
    CGROUP = "cgroup"  # instance is the path of a control group, which begins with /
    GPU = "gpu"  # the device is a label of the record, not part of the key
    XID = "xid"  # in a GPU's record: an error code of the NVIDIA driver
    GPU_LINK = "gpu_link"  # in a GPU's record: an NVLink or XGMI link, by number
    GPU_REASON = "gpu_reason"  # in a GPU's record: why its clocks are held back, or what an error was about
    ETHTOOL = "ethtool"  # instance is a network device whose driver keeps statistics of its own


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalogue.

    `unit` is UCUM (`By`, `s`, `ms`, `%`, `1`, `{packet}`). `name` never changes once released. The same name may
    exist in several scopes (`cpu_u` of the host, of a node, of a CPU): name and scope together identify an entry.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    scope: Scope = Scope.HOST

    def key(self, instance: str | int = "") -> str:
        """The key of this metric in a record: `cpu_u`, `cpu_u_node1`, `cpu_u.cpu7`, `rx_bytes.eth0`, `mlx5_0.port_rcv_data`."""
        match self.scope:
            case Scope.HOST | Scope.GPU:
                return self.name
            case Scope.NODE:
                return f"{self.name}_node{instance}"
            case Scope.CPU:
                return f"{self.name}.cpu{instance}"
            case Scope.RDMA:
                return f"{instance}.{self.name}"
            case _:
                return f"{self.name}.{instance}"


class Series(msgspec.Struct, frozen=True):
    """What a record's key stands for: the metric, and the device or CPU it is about ("" for the host)."""

    metric: Metric
    instance: str


_NODE_KEY = re.compile(r"^(.+)_node(\d+)$")
_CPU_INSTANCE = re.compile(r"^cpu(\d+)$")
_WITHOUT_SUFFIX = frozenset((Scope.HOST, Scope.GPU, Scope.NODE, Scope.CPU, Scope.RDMA, Scope.CGROUP))
# Metrics that sources may add while the daemon runs; DCGM describes some 600.
_MOST_ADDED = 2048


class Catalogue:
    """All metrics the daemon can produce; the only place where they are described.

    Built once from what the registered collectors declare. Raises ValueError when two entries claim one name and scope. What only a
    running source can describe (the fields that DCGM lists) is added with `declare`, from any thread.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._by_identity: dict[tuple[str, Scope], Metric] = {}
        self._by_suffix_name: dict[str, Metric] = {}
        self._resolved: dict[str, Series | None] = {}
        self._lock = threading.Lock()
        self._followers: list[Callable[[Sequence[Metric]], object]] = []
        self._room = _MOST_ADDED
        for metric in metrics:
            if clash := self._clash(metric):
                raise ValueError(clash)
            self._enter(metric)

    def declare(self, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
        """Add metrics at run time; those that are new. One whose name is taken is left out, and so is what exceeds 2,048 in all."""
        with self._lock:
            added = []
            for metric in metrics:
                if self._room and not self._clash(metric):
                    self._enter(metric)
                    self._room -= 1
                    added.append(metric)
            if added:
                self._resolved.clear()
            followers = tuple(self._followers)
        for follow in followers if added else ():
            follow(added)
        return tuple(added)

    def follow(self, follower: Callable[[Sequence[Metric]], object]) -> None:
        """Have `follower` called with all metrics that `declare` adds from now on."""
        with self._lock:
            self._followers.append(follower)

    def _clash(self, metric: Metric) -> str:
        if (metric.name, metric.scope) in self._by_identity:
            return f"metric {metric.name} ({metric.scope}) is declared twice"
        if metric.scope not in _WITHOUT_SUFFIX and (other := self._by_suffix_name.get(metric.name)):
            return f"metric {metric.name} has two device scopes: {other.scope} and {metric.scope}"
        return ""

    def _enter(self, metric: Metric) -> None:
        self._by_identity[metric.name, metric.scope] = metric
        if metric.scope not in _WITHOUT_SUFFIX:
            self._by_suffix_name[metric.name] = metric

    def __iter__(self) -> Iterator[Metric]:
        # A copy: another thread may declare more meanwhile.
        return iter(tuple(self._by_identity.values()))

    def __len__(self) -> int:
        return len(self._by_identity)

    def resolve(self, key: str) -> Series | None:
        """The metric and instance behind a record's key, or None for a key that nothing declares."""
        try:
            return self._resolved[key]
        except KeyError:
            series = self._resolve(key)
            if len(self._resolved) > 65536:  # devices that come and go must not fill memory
                self._resolved.clear()
            self._resolved[key] = series
            return series

    def _resolve(self, key: str) -> Series | None:
        for scope in (Scope.HOST, Scope.GPU):
            if metric := self._by_identity.get((key, scope)):
                return Series(metric, "")
        name, dot, instance = key.partition(".")
        if dot:
            cpu = _CPU_INSTANCE.match(instance)
            if cpu and (metric := self._by_identity.get((name, Scope.CPU))):
                return Series(metric, cpu[1])
            cgroup = self._by_identity.get((name, Scope.CGROUP)) if instance.startswith("/") else None
            if metric := cgroup or self._by_suffix_name.get(name):
                return Series(metric, instance)
            device, _, name = key.rpartition(".")
            if metric := self._by_identity.get((name, Scope.RDMA)):
                return Series(metric, device)
        elif (node := _NODE_KEY.match(key)) and (metric := self._by_identity.get((node[1], Scope.NODE))):
            return Series(metric, node[2])
        return None
