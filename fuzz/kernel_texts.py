"""The parsers of `/proc`, `/sys` and netlink that take the text itself."""

from collections import defaultdict
from collections.abc import Callable

from dynolog.sources import (
    cgroup_identity,
    counter_file,
    cpu_frequency,
    device_files,
    diskstats,
    ethtool,
    inet_diag,
    interrupts,
    kernel_settings,
    loadavg,
    meminfo,
    mountinfo,
    named_numbers,
    net_dev,
    net_snmp,
    numa,
    nvidia_version,
    own_addresses,
    pci_ids,
    pcie_link,
    pmu_format,
    pod_names,
    pressure,
    proc_stat,
    process,
    process_privileges,
    rdma,
    sockstat,
    tcp_listeners,
    topology,
    torch_library,
    tpu_page,
    unix_sockets,
    uptime,
    user_names,
)
from dynolog.sources.amdgpu import attribute_texts, gpu_metrics
from dynolog.sources.perf_event import reading, table
from fuzz.target import Feed, Target, plain, text_of

_IPV4 = (("127.0.0.1", 1778), ("127.0.0.1", 40000))
_IPV6 = (("::1", 1778), ("::1", 40000))
_SNMP = tuple(
    (name, column) for name in (b"Tcp", b"Udp", b"TcpExt") for column in (b"InSegs", b"InErrors", b"InDatagrams")
)
_IDS = ((7, 8), (9, 10))
_ROWS_BYTES = 2 * reading.read_bytes(2)


def _each(*feeds: Feed) -> Feed:
    def feed(data: bytes) -> None:
        for one in feeds:
            one(data)

    return feed


def _text(parse: Callable[[str], object]) -> Feed:
    return lambda data: parse(text_of(data))


def _stat(data: bytes) -> None:
    proc_stat.parse(data)
    proc_stat.parse_cpus(data)


def _interrupts(data: bytes) -> None:
    parser = interrupts.InterruptsParser()
    # Twice: the second time it knows where the lines were.
    parser.parse(data, len(data))
    parser.parse(data[: len(data) // 2], len(data) // 2)


def _tcp(data: bytes) -> None:
    inet_diag.find_line(data, *_IPV4)
    inet_diag.find_line(data, *_IPV6)
    tcp_listeners.parse_listeners(data, 1778)


def _metrics_table(data: bytes) -> None:
    found = gpu_metrics.parse(data)
    for value in found.__struct_fields__:
        getattr(found, value)


def _rows(data: bytes) -> None:
    """Rows are whole: whoever reads them leaves others out."""
    whole = len(data) // _ROWS_BYTES
    for row in range(whole):
        table.parse_table(data[row * _ROWS_BYTES : (row + 1) * _ROWS_BYTES], (0, 1), _IDS)


def _tpu_page(data: bytes) -> None:
    tpu_page.chips(tpu_page.parse_page(data.decode("utf-8", "replace")))


TARGETS: tuple[Target, ...] = (
    plain("proc_stat", _stat, ValueError, modules=["proc_stat"]),
    plain("meminfo", lambda data: meminfo.parse(data, ("MemTotal", "MemFree", "HugePages_Total")), modules=["meminfo"]),
    plain("node_meminfo", numa.parse_meminfo, modules=["numa"]),
    plain("named_numbers", lambda data: named_numbers.parse(data, ("pgfault", "oom_kill")), modules=["named_numbers", "vmstat"]),
    plain("loadavg", loadavg.parse, ValueError, modules=["loadavg"]),
    plain("uptime", uptime.parse, ValueError, modules=["uptime"]),
    plain("pressure", pressure.parse, modules=["pressure"]),
    plain("interrupts", _interrupts, ValueError, modules=["interrupts"]),
    plain("cpuinfo", cpu_frequency.parse_cpuinfo, modules=["cpu_frequency"]),
    plain("diskstats", lambda data: diskstats.parse(data, defaultdict(lambda: "sda")), modules=["diskstats"]),
    plain("mountinfo", _each(mountinfo.parse, kernel_settings.parse_hidepid), modules=["mountinfo", "kernel_settings"]),
    plain("net_dev", _each(net_dev.parse, lambda data: net_dev.parse(data, (b"eth", b"en"))), modules=["net_dev"]),
    plain("net_snmp", lambda data: net_snmp.ProtocolTable(_SNMP).parse(data), modules=["net_snmp"]),
    plain("net_snmp6", lambda data: net_snmp.parse_snmp6(data, (b"Udp6InDatagrams", b"Udp6NoPorts"))),
    plain("sockstat", sockstat.parse, modules=["sockstat"]),
    plain("net_tcp", _tcp, modules=["tcp_listeners"]),
    plain("inet_diag", lambda data: inet_diag.parse(data, []), OSError, modules=["inet_diag"]),
    plain(
        "own_addresses",
        _text(lambda text: (own_addresses.parse_fib_trie(text), own_addresses.parse_if_inet6(text))),
        modules=["own_addresses"],
    ),
    plain("net_unix", lambda data: list(unix_sockets.parse_unix_sockets(data)), modules=["unix_sockets"]),
    plain("ethtool_names", lambda data: ethtool.parse_names(data, len(data) // 32), modules=["ethtool"]),
    plain("process_stat", process.parse_stat, ValueError, modules=["process"]),
    plain(
        "process_texts",
        _each(
            process.parse_leader_pid,
            process.parse_namespace_pids,
            process.parse_environment,
            process.parse_command_line,
        ),
    ),
    plain("process_status", process_privileges.parse_status, ValueError, modules=["process_privileges"]),
    plain("process_limits", _each(process_privileges.parse_open_files_limit, process_privileges.is_nested)),
    plain("cgroup", _text(cgroup_identity.parse_cgroup), modules=["cgroup_identity"]),
    plain("device_link", _text(device_files.device_file), modules=["device_files"]),
    plain("pod_link", _text(pod_names.parse_link), modules=["pod_names"]),
    plain("passwd", user_names.parse_passwd, modules=["user_names"]),
    plain("memory_map", torch_library.find_torch, modules=["torch_library"]),
    plain("torch_version", _each(torch_library.parse_version_module, torch_library.parse_metadata)),
    plain("counter", _each(counter_file.parse_counter, rdma.parse_state, rdma.parse_rate), modules=["counter_file", "rdma"]),
    plain("cpu_list", _text(topology.parse_cpu_list), ValueError, modules=["topology", "cpu_ids"]),
    plain("pcie_link", _each(_text(pcie_link.generation), _text(pcie_link.lanes)), modules=["pcie_link"]),
    plain("pci_ids", lambda data: pci_ids.parse(data, 0x1002, {0x740F, 0x74A1}), modules=["pci_ids"]),
    plain("nvidia_version", _text(nvidia_version.parse_driver_version), modules=["nvidia_version"]),
    plain("pmu_format", _text(pmu_format.parse_format), ValueError, modules=["pmu_format"]),
    plain("perf_group", lambda data: reading.parse_reading(data, _IDS[0]), modules=["perf_event.reading"]),
    plain("perf_table", _rows, modules=["perf_event.table"]),
    plain(
        "amd_texts",
        _each(attribute_texts.clock_levels, attribute_texts.block_errors, attribute_texts.retired_pages),
        modules=["amdgpu.attribute_texts"],
    ),
    plain(
        "amd_metrics", _metrics_table, ValueError, gpu_metrics.UnknownRevision, modules=["amdgpu.gpu_metrics", "amdgpu.metrics_layout"]
    ),
    plain("tpu_page", _tpu_page, modules=["tpu_page"]),
)  # fmt: skip
