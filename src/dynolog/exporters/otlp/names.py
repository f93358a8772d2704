"""What a metric of the catalogue is called in OTLP: name, unit, scale and attributes.

Two styles. `dynolog` keeps the names of the log, as the public Dynolog sends them; shares become ratios and CPU times seconds.
`semconv` uses the OpenTelemetry semantic conventions for systems and hardware where they have the same quantity, and `dynolog.NAME`
where they have not. Rules derive what they can from the catalogue; the tables here say only what it does not know.
"""

from collections.abc import Mapping

import msgspec

from dynolog.model.metric import Metric, Scope, Series

STYLES = ("dynolog", "semconv")
AttributeValue = str | int
Attributes = tuple[tuple[str, AttributeValue], ...]


class OtlpName(msgspec.Struct, frozen=True):
    """A metric in OTLP: the value sent is the record's `* times / over`; `instance` is the attribute that holds the device or CPU."""

    name: str
    unit: str
    times: int = 1
    over: int = 1
    attributes: Attributes = ()
    instance: str = ""

    def value(self, value: float) -> int | float:
        """The value in the unit of this name; a whole number stays one where nothing is divided."""
        return value * self.times if self.over == 1 else value * self.times / self.over


# Units that are sent as another one: it, and the multiplier and divisor.
_SCALES = {"%": ("1", 1, 100), "{four_bytes}": ("By", 4, 1)}
_CPU_MODES = {
    "cpu_util": "active",
    "cpu_u": "user",
    "cpu_s": "system",
    "cpu_i": "idle",
    "cpu_guest": "guest",
    "cpu_guest_nice": "guest_nice",
}
_CPU_TIME_MODES = {
    "cpu_u_ms": "user",
    "cpu_s_ms": "system",
    "cpu_n_ms": "nice",
    "cpu_w_ms": "iowait",
    "cpu_x_ms": "irq",
    "cpu_y_ms": "softirq",
    "cpu_z_ms": "steal",
    "cpu_guest_ms": "guest",
    "cpu_guest_nice_ms": "guest_nice",
}
_NETWORK_DIRECTION = "network.io.direction"
_DISK_DIRECTION = "disk.io.direction"
_GPU_ATTRIBUTES: Mapping[str, Attributes] = {
    "graphics_engine_active_ratio": (("hw.gpu.task", "general"),),
    "gpu_device_utilization": (("hw.gpu.task", "device"),),
    "fp16_active": (("pipe", "fp16"),),
    "fp32_active": (("pipe", "fp32"),),
    "fp64_active": (("pipe", "fp64"),),
    "tensorcore_active": (("pipe", "tensorcore"),),
    "pcie_tx_bytes": (("direction", "transmit"),),
    "pcie_rx_bytes": (("direction", "receive"),),
    "nvlink_tx_bytes": (("direction", "transmit"),),
    "nvlink_rx_bytes": (("direction", "receive"),),
    "gpu_power_draw": (("hw.type", "gpu"),),
    "dcgm_error": (("hw.type", "gpu"),),
}
# The attribute that tells the instances of a scope apart.
_INSTANCES: Mapping[Scope, str] = {
    Scope.CPU: "cpu.logical_number",
    Scope.NODE: "numa.node",
    Scope.NIC: "network.interface.name",
    Scope.DISK: "system.device",
    Scope.FILESYSTEM: "system.filesystem.mountpoint",
    Scope.RDMA: "hw.id",
    Scope.SENSOR: "hw.id",
    Scope.MEMORY_CONTROLLER: "hw.id",
    Scope.PCI: "hw.id",
    Scope.COLLECTOR: "dynolog.collector",
    Scope.EXPORTER: "dynolog.exporter",
    Scope.SOCKET: "cpu.package",
    Scope.CORE_TYPE: "cpu.core_type",
    Scope.EVENT: "dynolog.event",
    Scope.CGROUP: "cgroup.path",
    Scope.XID: "dynolog.gpu.xid",
    Scope.GPU_LINK: "dynolog.gpu.link",
    Scope.GPU_REASON: "dynolog.gpu.reason",
    Scope.ETHTOOL: "network.interface.name",
}
# Beside the host's metric of the same name: in one metric a sum or mean would count each part twice.
_BESIDE_THE_HOST = {
    Scope.CPU: "_cpu",
    Scope.SOCKET: "_socket",
    Scope.CORE_TYPE: "_core_type",
    Scope.CGROUP: "_cgroup",
    Scope.ETHTOOL: "_ethtool",
}
# Labels of a record (GPU records have them) that have another name as attributes; "" leaves a label out.
LABELS: Mapping[str, Mapping[str, str]] = {
    "dynolog": {"device": "hw.id", "gpu_name": "hw.model", "minor_id": ""},
    "semconv": {
        "device": "hw.id",
        "gpu_name": "hw.model",
        "minor_id": "",
        "pod_name": "k8s.pod.name",
        "pod_namespace": "k8s.namespace.name",
        "container_name": "k8s.container.name",
        "pod_uid": "k8s.pod.uid",
        "container_id": "container.id",
        "container_runtime": "container.runtime",
        "username": "user.name",
    },
}


def otlp_name(metric: Metric, style: str) -> OtlpName:
    """The OTLP name of a metric in one of STYLES."""
    if style == "semconv":
        return _SEMCONV.get((metric.name, metric.scope)) or _not_in_semconv(metric)
    return _dynolog(metric)


def series_name(series: Series, style: str) -> OtlpName:
    """The OTLP name of a metric of one device or CPU: its instance is among the attributes."""
    name = otlp_name(series.metric, style)
    if not name.instance:
        return name
    instance: AttributeValue = series.instance
    if series.metric.scope is Scope.CPU:
        instance = int(series.instance)
    # The public Dynolog has the node's number in the name as well.
    text = f"{name.name}{instance}" if name.instance == "cpu.socket" and style == "dynolog" else name.name
    return msgspec.structs.replace(name, name=text, attributes=((name.instance, instance), *name.attributes))


def unknown_name(key: str, style: str) -> OtlpName:
    """For a value that the catalogue does not know: its key, made legal."""
    legal = "".join(c if c.isascii() and (c.isalnum() or c in "_.-/") else "_" for c in key)
    prefix = "dynolog." if style == "semconv" else ("" if legal[:1].isalpha() else "x")
    return OtlpName((prefix + legal)[:255], "")


def _dynolog(metric: Metric) -> OtlpName:
    unit, times, over = _SCALES.get(metric.unit, (metric.unit, 1, 1))
    name, attributes, instance = metric.name, _attributes(metric), _INSTANCES.get(metric.scope, "")
    if metric.scope is Scope.HOST and name in _CPU_TIME_MODES:
        unit, over = "s", 1000
    elif metric.scope is Scope.NODE and name in _CPU_MODES:
        name, instance = f"{name}_node", "cpu.socket"
    else:
        name += _BESIDE_THE_HOST.get(metric.scope, "")
    return OtlpName(name, unit, times, over, attributes, instance)


def _attributes(metric: Metric) -> Attributes:
    name = metric.name
    match metric.scope:
        case Scope.HOST | Scope.CPU | Scope.NODE:
            mode = _CPU_MODES.get(name) or (_CPU_TIME_MODES.get(name) if metric.scope is Scope.HOST else None)
            return (("cpu.mode", mode),) if mode else ()
        case Scope.NIC | Scope.ETHTOOL:
            return _direction(name, {"rx_": "receive", "tx_": "transmit"}, _NETWORK_DIRECTION)
        case Scope.DISK:
            return _direction(name, {"disk_read_": "read", "disk_write_": "write"}, _DISK_DIRECTION)
        case Scope.RDMA:
            words = {"port_rcv_": "receive", "rx_": "receive", "port_xmit_": "transmit", "tx_": "transmit"}
            return (("hw.type", "network"), *_direction(name, words, _NETWORK_DIRECTION))
        case Scope.GPU | Scope.XID | Scope.GPU_LINK | Scope.GPU_REASON as scope:
            return _GPU_ATTRIBUTES.get(name, () if scope is Scope.GPU else (("hw.type", "gpu"),))
        case _:
            return ()


def _direction(name: str, prefixes: Mapping[str, str], attribute: str) -> Attributes:
    return next((((attribute, word),) for prefix, word in prefixes.items() if name.startswith(prefix)), ())


def _not_in_semconv(metric: Metric) -> OtlpName:
    own = _dynolog(metric)
    return msgspec.structs.replace(own, name="dynolog." + own.name.removeprefix("dynolog_"))


def _semconv() -> dict[tuple[str, Scope], OtlpName]:
    """The metrics for which the conventions have the same quantity (a rate is not their counter, a part is not their whole)."""
    table: dict[tuple[str, Scope], OtlpName] = {}

    def add(
        scope: Scope, name: str, otlp: str, unit: str, *attributes: tuple[str, str], times: int = 1, over: int = 1
    ) -> None:
        table[name, scope] = OtlpName(otlp, unit, times, over, attributes, _INSTANCES.get(scope, ""))

    for scope in (Scope.HOST, Scope.CPU):
        for name in ("cpu_u", "cpu_s", "cpu_i"):
            add(scope, name, "system.cpu.utilization", "1", ("cpu.mode", _CPU_MODES[name]), over=100)
        add(scope, "cpu_frequency_mhz", "system.cpu.frequency", "Hz", times=1_000_000)
    # Guest times are inside user and nice: beside them a sum over the modes would count them twice.
    for name, mode in _CPU_TIME_MODES.items():
        if "guest" not in mode:
            add(
                Scope.HOST,
                name,
                "system.cpu.time",
                "s",
                ("cpu.mode", "interrupt" if mode == "irq" else mode),
                over=1000,
            )
    for name, state in (("used", "used"), ("free", "free"), ("cached", "cached"), ("buffers", "buffers")):
        add(Scope.HOST, f"mem_{name}_bytes", "system.memory.usage", "By", ("system.memory.state", state))
    add(Scope.HOST, "mem_util", "system.memory.utilization", "1", ("system.memory.state", "used"), over=100)
    add(Scope.HOST, "mem_total_bytes", "system.memory.limit", "By")
    add(Scope.HOST, "mem_shared_bytes", "system.memory.shared", "By")
    add(Scope.HOST, "mem_available_bytes", "system.memory.linux.available", "By")
    for state in ("reclaimable", "unreclaimable"):
        key = f"mem_slab_{state}_bytes"
        add(Scope.HOST, key, "system.memory.linux.slab.usage", "By", ("linux.memory.slab.state", state))
    for state in ("used", "free"):
        add(Scope.HOST, f"swap_{state}_bytes", "system.paging.usage", "By", ("system.paging.state", state))
    add(Scope.HOST, "page_faults", "system.paging.faults", "{fault}")
    add(Scope.HOST, "forks", "system.process.created", "{process}")
    add(Scope.HOST, "uptime", "system.uptime", "s")
    connection = (("network.transport", "tcp"), ("network.connection.state", "established"))
    add(Scope.HOST, "tcp_established", "system.network.connection.count", "{connection}", *connection)
    for prefix, word in (("rx", "receive"), ("tx", "transmit")):
        direction = (_NETWORK_DIRECTION, word)
        add(Scope.NIC, f"{prefix}_bytes", "system.network.io", "By", direction)
        add(Scope.NIC, f"{prefix}_packets", "system.network.packet.count", "{packet}", direction)
        add(Scope.NIC, f"{prefix}_errors", "system.network.errors", "{error}", direction)
        add(Scope.NIC, f"{prefix}_drops", "system.network.packet.dropped", "{packet}", direction)
    for word in ("read", "write"):
        direction = (_DISK_DIRECTION, word)
        add(Scope.DISK, f"disk_{word}_bytes", "system.disk.io", "By", direction)
        add(Scope.DISK, f"disk_{word}_ops", "system.disk.operations", "{operation}", direction)
        add(Scope.DISK, f"disk_{word}_merges", "system.disk.merged", "{operation}", direction)
        add(Scope.DISK, f"disk_{word}_ms", "system.disk.operation_time", "s", direction, over=1000)
    add(Scope.DISK, "disk_busy_ms", "system.disk.io_time", "s", over=1000)
    add(Scope.FILESYSTEM, "filesystem_size_bytes", "system.filesystem.limit", "By")
    add(Scope.FILESYSTEM, "filesystem_util", "system.filesystem.utilization", "1", over=100)
    add(
        Scope.FILESYSTEM,
        "filesystem_available_bytes",
        "system.filesystem.usage",
        "By",
        ("system.filesystem.state", "free"),
    )
    add(Scope.SENSOR, "sensor_temperature_celsius", "hw.temperature", "Cel", ("hw.type", "temperature"))
    add(Scope.SENSOR, "sensor_fan_rpm", "hw.fan.speed", "rpm", ("hw.type", "fan"))
    add(Scope.SENSOR, "sensor_power_watts", "hw.power", "W", ("hw.type", "power_supply"))
    add(Scope.SENSOR, "rapl_power_watts", "hw.power", "W", ("hw.type", "cpu"))
    add(Scope.SENSOR, "rapl_energy_joules", "hw.energy", "J", ("hw.type", "cpu"))
    for name, kind in (("correctable", "corrected"), ("uncorrectable", "uncorrected")):
        memory = (("hw.type", "memory"), ("error.type", kind))
        add(Scope.MEMORY_CONTROLLER, f"edac_{name}_errors", "hw.errors", "{error}", *memory)
    table.update(_semconv_gpu())
    return table


def _semconv_gpu() -> dict[tuple[str, Scope], OtlpName]:
    gpu = ("hw.type", "gpu")
    names = {
        "gpu_device_utilization": OtlpName(
            "hw.gpu.utilization", "1", over=100, attributes=(gpu, ("hw.gpu.task", "general"))
        ),
        "gpu_memory_used_bytes": OtlpName("hw.gpu.memory.usage", "By", attributes=(gpu,)),
        "gpu_memory_total_bytes": OtlpName("hw.gpu.memory.limit", "By", attributes=(gpu,)),
        "gpu_power_draw": OtlpName("hw.power", "W", attributes=(gpu,)),
        "gpu_energy_joules": OtlpName("hw.energy", "J", attributes=(gpu,)),
        "gpu_temperature_celsius": OtlpName("hw.temperature", "Cel", attributes=(gpu,)),
    }
    for task in ("encoder", "decoder"):
        names[f"gpu_{task}_utilization"] = OtlpName(
            "hw.gpu.utilization", "1", over=100, attributes=(gpu, ("hw.gpu.task", task))
        )
    for kind in ("corrected", "uncorrected"):
        names[f"ecc_{kind}_errors"] = OtlpName("hw.errors", "{error}", attributes=(gpu, ("error.type", kind)))
    return {(name, Scope.GPU): otlp for name, otlp in names.items()}


_SEMCONV = _semconv()
