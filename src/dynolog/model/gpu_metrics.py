"""The metrics of accelerators: one list for all backends, so that a name means the same whoever reads it.

Ratios of profiling counters are 0-1, utilisations 0-100, as in the public Dynolog; memory in bytes; PCIe and NVLink rates in
bytes a second. Sources: the field list of DCGM's public header, the NVML reference, the amdgpu and xe pages of the kernel.
"""

from dynolog.model.metric import Kind, Metric, Scope


def _gpu(name: str, kind: Kind, unit: str, description: str, scope: Scope = Scope.GPU) -> Metric:
    return Metric(name=name, kind=kind, unit=unit, description=description, scope=scope)


_LABELS = (
    _gpu("minor_id", Kind.LABEL, "", "minor number of the device file"),
    _gpu("gpu_name", Kind.LABEL, "", "product name"),
    _gpu("gpu_uuid", Kind.LABEL, "", "unique id of the device or of its MIG instance"),
    _gpu("gpu_partition_mode", Kind.LABEL, "", "how the device is divided (AMD: SPX, DPX, TPX, QPX, CPX)"),
    _gpu("xgmi_hive_id", Kind.LABEL, "", "devices with the same id reach each other over XGMI (AMD)"),
)

_PROFILING = (
    _gpu("graphics_engine_active_ratio", Kind.RATIO, "1", "share of time in which any engine was busy"),
    _gpu("sm_active_ratio", Kind.RATIO, "1", "share of time in which an SM had at least one warp, mean of all SMs"),
    _gpu("sm_occupancy", Kind.RATIO, "1", "resident warps as a share of what fits, mean of all SMs"),
    _gpu("tensorcore_active", Kind.RATIO, "1", "share of cycles in which the tensor pipe was busy"),
    _gpu("hbm_mem_bw_util", Kind.RATIO, "1", "share of cycles in which device memory was read or written"),
    _gpu("fp64_active", Kind.RATIO, "1", "share of cycles in which the FP64 pipe was busy"),
    _gpu("fp32_active", Kind.RATIO, "1", "share of cycles in which the FP32 pipe was busy"),
    _gpu("fp16_active", Kind.RATIO, "1", "share of cycles in which the FP16 pipe was busy"),
    _gpu("pcie_tx_bytes", Kind.RATE, "By/s", "sent over PCIe, headers and payload"),
    _gpu("pcie_rx_bytes", Kind.RATE, "By/s", "received over PCIe, headers and payload"),
    _gpu("nvlink_tx_bytes", Kind.RATE, "By/s", "sent over NVLink (AMD: XGMI), payload"),
    _gpu("nvlink_rx_bytes", Kind.RATE, "By/s", "received over NVLink (AMD: XGMI), payload"),
)

_USE = (
    _gpu(
        "gpu_device_utilization",
        Kind.RATIO,
        "%",
        "share of time in which a kernel ran; says nothing about how many SMs",
    ),
    _gpu(
        "gpu_memory_utilization",
        Kind.RATIO,
        "%",
        "share of time in which device memory was read or written (copying, not use)",
    ),
    _gpu("gpu_encoder_utilization", Kind.RATIO, "%", "video encoder busy"),
    _gpu("gpu_decoder_utilization", Kind.RATIO, "%", "video decoder busy"),
    _gpu("gpu_memory_total_bytes", Kind.GAUGE, "By", "device memory, reserved included"),
    _gpu("gpu_memory_used_bytes", Kind.GAUGE, "By", "device memory allocated, without what the driver reserves"),
    _gpu("gpu_memory_free_bytes", Kind.GAUGE, "By", "device memory that can be allocated"),
    _gpu("gpu_memory_reserved_bytes", Kind.GAUGE, "By", "device memory that driver and firmware keep"),
    _gpu("gpu_gtt_total_bytes", Kind.GAUGE, "By", "system memory that the device may map (AMD GTT)"),
    _gpu("gpu_gtt_used_bytes", Kind.GAUGE, "By", "system memory that the device has mapped (AMD GTT)"),
    _gpu("gpu_processes", Kind.GAUGE, "{process}", "processes that hold a context on the device"),
    _gpu(
        "gpu_job_processes",
        Kind.GAUGE,
        "{process}",
        "processes of one job, pod or user on a device that several share; in a record of its own with their labels",
    ),
    _gpu(
        "gpu_job_memory_used_bytes",
        Kind.GAUGE,
        "By",
        "device memory of the processes of one job, pod or user on a device that several share",
    ),
    _gpu(
        "gpu_awake_ratio",
        Kind.RATIO,
        "1",
        "share of time in which the engines were not in their idle state (Intel RC6, C6); the device was busy at most that long",
    ),
)

_CLOCKS = (
    _gpu("gpu_frequency_mhz", Kind.GAUGE, "MHz", "SM (AMD, Intel: engine) clock"),
    _gpu("gpu_frequency_max_mhz", Kind.GAUGE, "MHz", "highest SM clock of the device"),
    _gpu("gpu_memory_frequency_mhz", Kind.GAUGE, "MHz", "memory clock"),
    _gpu("gpu_memory_frequency_max_mhz", Kind.GAUGE, "MHz", "highest memory clock of the device"),
    _gpu(
        "gpu_clock_event_reasons", Kind.GAUGE, "1", "bits of the reasons for which the clocks are below their maximum"
    ),
    _gpu(
        "gpu_throttle_active",
        Kind.GAUGE,
        "1",
        "1 when the clocks are held back at this moment, by reason",
        Scope.GPU_REASON,
    ),
    _gpu("gpu_throttle_ms", Kind.DELTA, "ms", "time that the clocks were held back, by reason", Scope.GPU_REASON),
)

_POWER = (
    _gpu("gpu_power_draw", Kind.GAUGE, "W", "power of the board"),
    _gpu("gpu_power_limit", Kind.GAUGE, "W", "power limit in force"),
    _gpu("gpu_power_limit_max", Kind.GAUGE, "W", "highest limit that can be set"),
    _gpu("gpu_energy_joules", Kind.DELTA, "J", "energy used"),
    _gpu("gpu_temperature_celsius", Kind.GAUGE, "Cel", "temperature of the processor"),
    _gpu("gpu_edge_temperature_celsius", Kind.GAUGE, "Cel", "temperature at the edge of the chip (AMD)"),
    _gpu("gpu_memory_temperature_celsius", Kind.GAUGE, "Cel", "temperature of the memory"),
    _gpu("gpu_temperature_slowdown_celsius", Kind.GAUGE, "Cel", "temperature at which the clocks are held back"),
    _gpu("gpu_fan_speed", Kind.RATIO, "%", "fan, of its maximum"),
    _gpu("gpu_fan_rpm", Kind.GAUGE, "{revolution}/min", "speed of the fan"),
)

_LINKS = (
    _gpu("pcie_link_generation", Kind.GAUGE, "1", "PCIe generation now; idle devices may lower it"),
    _gpu("pcie_link_generation_max", Kind.GAUGE, "1", "highest PCIe generation of device and slot"),
    _gpu("pcie_link_width", Kind.GAUGE, "{lane}", "PCIe lanes now"),
    _gpu("pcie_link_width_max", Kind.GAUGE, "{lane}", "most PCIe lanes of device and slot"),
    _gpu("pcie_replays", Kind.DELTA, "{error}", "PCIe packets sent again"),
    _gpu("nvlink_crc_errors", Kind.DELTA, "{error}", "CRC errors of flits and data, by link", Scope.GPU_LINK),
    _gpu("nvlink_replays", Kind.DELTA, "{error}", "packets sent again, by link", Scope.GPU_LINK),
    _gpu("nvlink_recoveries", Kind.DELTA, "{error}", "recoveries of a link", Scope.GPU_LINK),
    _gpu("xgmi_peers", Kind.GAUGE, "{gpu}", "devices that this one reaches directly over XGMI (AMD)"),
    _gpu("nvlink_is_up", Kind.GAUGE, "1", "1 when the link is active", Scope.GPU_LINK),
)

_HEALTH = (
    _gpu("gpu_up", Kind.GAUGE, "1", "1 when the device answers, 0 when it is lost or must be reset"),
    _gpu("dcgm_error", Kind.GAUGE, "{error}", "1 when a watched field came back blank"),
    _gpu("gpu_blank_values", Kind.GAUGE, "{value}", "values that the library gave as blank in this round"),
    _gpu(
        "gpu_suspect",
        Kind.GAUGE,
        "1",
        "1 when profiling counters have read 0 for 2 s and longer while the device was busy; such zeros are left out",
    ),
    _gpu("xid_errors", Kind.DELTA, "{error}", "Xid errors of the driver, by code", Scope.XID),
    _gpu("xid_last_seen_timestamp", Kind.GAUGE, "s", "when this Xid was last seen (Unix time)", Scope.XID),
    _gpu("ecc_corrected_errors", Kind.DELTA, "{error}", "memory errors that ECC corrected"),
    _gpu("ecc_uncorrected_errors", Kind.DELTA, "{error}", "memory errors that ECC could not correct"),
    _gpu("ecc_corrected_errors_lifetime", Kind.GAUGE, "{error}", "errors that ECC corrected since the board was made"),
    _gpu(
        "ecc_uncorrected_errors_lifetime",
        Kind.GAUGE,
        "{error}",
        "errors that ECC could not correct since the board was made",
    ),
    _gpu("retired_pages", Kind.GAUGE, "{page}", "memory pages taken out of use for good"),
    _gpu("remapped_rows_corrected", Kind.GAUGE, "{row}", "rows replaced after corrected errors"),
    _gpu("remapped_rows_uncorrected", Kind.GAUGE, "{row}", "rows replaced after uncorrected errors"),
    _gpu("row_remap_pending", Kind.GAUGE, "1", "1 when a row waits for a reset to be replaced"),
    _gpu("row_remap_failure", Kind.GAUGE, "1", "1 when a row could not be replaced: the device is to be exchanged"),
    _gpu("ras_errors_corrected", Kind.DELTA, "{error}", "corrected errors, by block (AMD RAS)", Scope.GPU_REASON),
    _gpu("ras_errors_uncorrected", Kind.DELTA, "{error}", "uncorrected errors, by block (AMD RAS)", Scope.GPU_REASON),
)

GPU_METRICS: tuple[Metric, ...] = (*_LABELS, *_PROFILING, *_USE, *_CLOCKS, *_POWER, *_LINKS, *_HEALTH)
HOST_GPU_METRICS: tuple[Metric, ...] = (
    _gpu("gpus_expected", Kind.GAUGE, "{gpu}", "devices known to be in this machine", Scope.HOST),
    _gpu("gpus_seen", Kind.GAUGE, "{gpu}", "devices that answer", Scope.HOST),
    _gpu(
        "gpu_sample_age_seconds",
        Kind.GAUGE,
        "s",
        "age of the values of the devices when they were reported",
        Scope.HOST,
    ),
)
