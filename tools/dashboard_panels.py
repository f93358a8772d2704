"""The panels of the Grafana dashboard, row by row, in the standard Prometheus names."""

from typing import NamedTuple


class Query(NamedTuple):
    """One line of a panel, or one for each of several devices."""

    expression: str
    legend: str


class Graph(NamedTuple):
    """One panel; `unit` is Grafana's name of it."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    help: str = ""


def chosen(more: str = "") -> str:
    """The label matchers of a query: the hosts that were chosen, and `more`."""
    return f'{{instance=~"$instance"{"," if more else ""}{more}}}'


def rate(metric: str, by: str = "", more: str = "") -> str:
    """Of a counter per second, summed by instance and `by`."""
    return f"sum by (instance{', ' if by else ''}{by}) (rate(dynolog_{metric}_total{chosen(more)}[$__rate_interval]))"


def growth(metric: str) -> str:
    """Of a counter, in one step of the graph."""
    return f"increase(dynolog_{metric}_total{chosen()}[$__rate_interval])"


def value(metric: str) -> str:
    """Of a gauge, as it is."""
    return f"dynolog_{metric}{chosen()}"


def shares(*modes: str) -> tuple[Query, ...]:
    """Of CPU time."""
    return tuple(Query(value(f"cpu_{mode}_ratio"), f"{{{{instance}}}} {mode}") for mode in modes)


ROWS: dict[str, tuple[Graph, ...]] = {
    "Host": (
        Graph("CPU in use", "percentunit", (Query(value("cpu_utilization_ratio"), "{{instance}}"),)),
        Graph("CPU by mode", "percentunit", shares("user", "system")),
        Graph(
            "CPU time lost",
            "percentunit",
            tuple(
                Query(rate(f"cpu_{mode}_seconds"), f"{{{{instance}}}} {mode}")
                for mode in ("iowait", "steal", "softirq")
            ),
            "Seconds of CPU time a second: waiting for disks, taken by the hypervisor, spent on softirqs",
        ),
        Graph(
            "Load",
            "short",
            (Query(value("load_1m"), "{{instance}} 1 m"), Query(value("load_15m"), "{{instance}} 15 m")),
        ),
        Graph(
            "CPU frequency",
            "hertz",
            (
                Query(value("cpu_frequency_hertz"), "{{instance}}"),
                Query(value("cpu_frequency_min_hertz"), "{{instance}} slowest"),
            ),
        ),
        Graph(
            "Throttled by heat",
            "cps",
            (
                Query(rate("cpu_core_throttles"), "{{instance}} cores"),
                Query(rate("cpu_package_throttles"), "{{instance}} packages"),
            ),
        ),
        Graph("Context switches", "cps", (Query(rate("context_switches"), "{{instance}}"),)),
        Graph("Processor power", "watt", (Query(value("rapl_power_watts"), "{{instance}} {{sensor}}"),)),
    ),
    "Pressure": tuple(
        Graph(
            f"Stalled for {what}",
            "percentunit",
            tuple(
                Query(rate(f"pressure_{what}_{who}_seconds"), f"{{{{instance}}}} {who}")
                for who in (("full",) if what == "irq" else ("some", "full"))
            ),
            f"Share of time in which some or all tasks waited for {what}",
        )
        for what in ("cpu", "memory", "io", "irq")
    ),
    "Memory": (
        Graph(
            "Memory",
            "bytes",
            tuple(
                Query(value(f"memory_{what}_bytes"), f"{{{{instance}}}} {what}") for what in ("total", "used", "cached")
            ),
        ),
        Graph("Memory in use", "percentunit", (Query(value("memory_utilization_ratio"), "{{instance}}"),)),
        Graph(
            "Swapped",
            "Bps",
            (Query(rate("swap_in_bytes"), "{{instance}} in"), Query(rate("swap_out_bytes"), "{{instance}} out")),
        ),
        Graph("Major page faults", "cps", (Query(rate("page_faults_major"), "{{instance}}"),)),
        Graph("Processes killed for want of memory", "short", (Query(growth("oom_kills"), "{{instance}}"),)),
        Graph(
            "Pages from the wrong NUMA node",
            "cps",
            (Query(rate("numa_miss_pages", "node"), "{{instance}} node {{node}}"),),
        ),
    ),
    "Network": (
        Graph(
            "Traffic",
            "Bps",
            (
                Query(rate("network_receive_bytes", "device", 'device!="lo"'), "{{instance}} {{device}} in"),
                Query(rate("network_transmit_bytes", "device", 'device!="lo"'), "{{instance}} {{device}} out"),
            ),
        ),
        Graph(
            "Share of the link",
            "percentunit",
            (
                Query(value("network_receive_utilization_ratio"), "{{instance}} {{device}} in"),
                Query(value("network_transmit_utilization_ratio"), "{{instance}} {{device}} out"),
            ),
        ),
        Graph(
            "Errors and drops",
            "pps",
            tuple(
                Query(rate(f"network_{way}_{what}", "device"), f"{{{{instance}}}} {{{{device}}}} {way} {what}")
                for way in ("receive", "transmit")
                for what in ("errors", "drops")
            ),
        ),
        Graph("TCP sent again", "pps", (Query(rate("tcp_retransmitted_segments"), "{{instance}}"),)),
        Graph("Connections refused for want of room", "cps", (Query(rate("tcp_listen_drops"), "{{instance}}"),)),
        Graph("Link changes", "short", (Query(growth("network_carrier_changes"), "{{instance}} {{device}}"),)),
    ),
    "Disks": (
        Graph(
            "Throughput",
            "Bps",
            (
                Query(rate("disk_read_bytes", "device"), "{{instance}} {{device}} read"),
                Query(rate("disk_write_bytes", "device"), "{{instance}} {{device}} written"),
            ),
        ),
        Graph(
            "Latency",
            "s",
            (
                Query(value("disk_read_latency_seconds"), "{{instance}} {{device}} read"),
                Query(value("disk_write_latency_seconds"), "{{instance}} {{device}} write"),
            ),
        ),
        Graph(
            "Busy",
            "percentunit",
            (Query(value("disk_utilization_ratio"), "{{instance}} {{device}}"),),
            "At 1 a disk always had a request; a parallel one may take more",
        ),
        Graph("Queue", "short", (Query(value("disk_queue_length"), "{{instance}} {{device}}"),)),
        Graph(
            "File systems",
            "percentunit",
            (Query(value("filesystem_utilization_ratio"), "{{instance}} {{mountpoint}}"),),
        ),
        Graph(
            "File systems that do not answer",
            "short",
            (Query(f"{value('filesystem_responding')} == 0", "{{instance}} {{mountpoint}}"),),
        ),
    ),
    "GPU": (
        Graph("SM active", "percentunit", (Query(value("gpu_sm_active_ratio"), "{{instance}} GPU {{device}}"),)),
        Graph(
            "Tensor cores active",
            "percentunit",
            (Query(value("gpu_tensorcore_active_ratio"), "{{instance}} GPU {{device}}"),),
        ),
        Graph(
            "Memory bandwidth in use",
            "percentunit",
            (Query(value("gpu_hbm_memory_bandwidth_utilization_ratio"), "{{instance}} GPU {{device}}"),),
        ),
        Graph("Power", "watt", (Query(value("gpu_power_draw_watts"), "{{instance}} GPU {{device}}"),)),
        Graph("Clock", "hertz", (Query(value("gpu_frequency_hertz"), "{{instance}} GPU {{device}}"),)),
        Graph(
            "PCIe",
            "Bps",
            (
                Query(value("gpu_pcie_receive_bytes_per_second"), "{{instance}} GPU {{device}} in"),
                Query(value("gpu_pcie_transmit_bytes_per_second"), "{{instance}} GPU {{device}} out"),
            ),
        ),
        Graph(
            "NVLink",
            "Bps",
            (
                Query(value("gpu_nvlink_receive_bytes_per_second"), "{{instance}} GPU {{device}} in"),
                Query(value("gpu_nvlink_transmit_bytes_per_second"), "{{instance}} GPU {{device}} out"),
            ),
        ),
        Graph("Memory in use", "bytes", (Query(value("gpu_memory_used_bytes"), "{{instance}} GPU {{device}}"),)),
        Graph("Temperature", "celsius", (Query(value("gpu_temperature_celsius"), "{{instance}} GPU {{device}}"),)),
        Graph(
            "GPUs that do not answer",
            "short",
            (Query(f"{value('gpus_expected')} - {value('gpus_seen')}", "{{instance}}"),),
        ),
        Graph("Xid errors", "short", (Query(growth("gpu_xid_errors"), "{{instance}} GPU {{device}} Xid {{xid}}"),)),
        Graph("Fields that came back blank", "short", (Query(value("gpu_dcgm_error"), "{{instance}} GPU {{device}}"),)),
    ),
    "Fabric": (
        Graph(
            "Data",
            "Bps",
            (
                Query(rate("rdma_port_receive_data_bytes", "device"), "{{instance}} {{device}} in"),
                Query(rate("rdma_port_transmit_data_bytes", "device"), "{{instance}} {{device}} out"),
            ),
        ),
        Graph(
            "Packets",
            "pps",
            (
                Query(rate("rdma_port_receive_packets", "device"), "{{instance}} {{device}} in"),
                Query(rate("rdma_port_transmit_packets", "device"), "{{instance}} {{device}} out"),
            ),
        ),
        Graph(
            "Discards and errors",
            "pps",
            (
                Query(rate("rdma_port_transmit_discards", "device"), "{{instance}} {{device}} discarded"),
                Query(rate("rdma_port_receive_errors", "device"), "{{instance}} {{device}} errors"),
            ),
        ),
        Graph(
            "Congestion",
            "pps",
            (
                Query(rate("rdma_np_cnp_sent", "device"), "{{instance}} {{device}} notified"),
                Query(rate("rdma_rp_cnp_handled", "device"), "{{instance}} {{device}} slowed down"),
                Query(rate("rdma_np_ecn_marked_roce_packets", "device"), "{{instance}} {{device}} marked"),
            ),
        ),
        Graph(
            "Pauses",
            "pps",
            (
                Query(rate("rdma_transmit_pause_ctrl_phy", "device"), "{{instance}} {{device}} asked for"),
                Query(rate("rdma_receive_pause_ctrl_phy", "device"), "{{instance}} {{device}} had to make"),
            ),
        ),
        Graph(
            "Sent again",
            "pps",
            (
                Query(rate("rdma_out_of_sequence", "device"), "{{instance}} {{device}} out of sequence"),
                Query(rate("rdma_local_ack_timeout_err", "device"), "{{instance}} {{device}} not acknowledged"),
            ),
        ),
        Graph(
            "Links that are down or bad",
            "short",
            (
                Query(f"{value('rdma_port_up')} == 0", "{{instance}} {{device}} is down"),
                Query(rate("rdma_symbol_error", "device"), "{{instance}} {{device}} symbol errors"),
                Query(rate("rdma_link_downed", "device"), "{{instance}} {{device}} went down"),
            ),
        ),
    ),
    "What dynolog costs": (
        Graph(
            "CPU of the daemon", "percentunit", (Query(value("daemon_cpu_ratio"), "{{instance}}"),), "Share of one core"
        ),
        Graph("Memory of the daemon", "bytes", (Query(value("daemon_resident_memory_bytes"), "{{instance}}"),)),
        Graph(
            "Time of each collector", "s", (Query(value("collector_last_round_seconds"), "{{instance}} {{collector}}"),)
        ),
        Graph(
            "Collectors that are not well",
            "short",
            (
                Query(f"{value('collector_up')} == 0", "{{instance}} {{collector}}"),
                Query(f"{value('source_up')} == 0", "{{instance}} source {{source}}"),
            ),
        ),
        Graph(
            "Records lost by exporters",
            "cps",
            (Query(rate("exporter_dropped_records", "exporter"), "{{instance}} {{exporter}}"),),
        ),
        Graph("Wake-ups", "cps", (Query(rate("daemon_wakeups"), "{{instance}}"),)),
    ),
}
