"""SM, tensor, memory, PCIe and NVLink activity through GPM: counters that every process may read at once (Hopper and later)."""

import math
from typing import Any

# nvmlGpmMetricId_t: in percent, and in MiB/s.
_PERCENT = {
    1: "graphics_engine_active_ratio",
    2: "sm_active_ratio",
    3: "sm_occupancy",
    5: "tensorcore_active",
    10: "hbm_mem_bw_util",
    11: "fp64_active",
    12: "fp32_active",
    13: "fp16_active",
}
_MIB_PER_S = {20: "pcie_tx_bytes", 21: "pcie_rx_bytes", 60: "nvlink_rx_bytes", 61: "nvlink_tx_bytes"}
_METRICS = (*_PERCENT, *_MIB_PER_S)
_MIB = 1 << 20
# Rounding may give a little more than 100; more than this is no share of anything.
_MOST_PERCENT = 105.0


class GpmSampler:
    """Two samples of one GPU or MIG instance, used in turn: the values are means over the time between them.

    It takes no lock: DCGM and profilers may work at the same time. All calls raise NVMLError.
    """

    def __init__(self, nvml: Any, handle: Any, gpu_instance_id: int | None = None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._gpu_instance_id = gpu_instance_id
        self._older = nvml.nvmlGpmSampleAlloc()
        try:
            self._newer = nvml.nvmlGpmSampleAlloc()
        except nvml.NVMLError:
            nvml.nvmlGpmSampleFree(self._older)
            raise
        self._has_older = False
        self._question = nvml.c_nvmlGpmMetricsGet_t()
        self._question.version = nvml.NVML_GPM_METRICS_GET_VERSION
        self._question.numMetrics = len(_METRICS)
        for index, metric in enumerate(_METRICS):
            self._question.metrics[index].metricId = metric

    def read(self) -> dict[str, float]:
        """The means since the last call, by name; {} at the first call. What the device does not measure is missing."""
        has_older, self._has_older = self._has_older, False
        if self._gpu_instance_id is None:
            self._nvml.nvmlGpmSampleGet(self._handle, self._newer)
        else:
            self._nvml.nvmlGpmMigSampleGet(self._handle, self._gpu_instance_id, self._newer)
        found: dict[str, float] = {}
        try:
            if has_older:
                self._question.sample1 = self._older
                self._question.sample2 = self._newer
                self._nvml.nvmlGpmMetricsGet(self._question)
                found = self._answers()
        finally:
            self._older, self._newer = self._newer, self._older
        self._has_older = True
        return found

    def _answers(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for index, metric in enumerate(_METRICS):
            answer = self._question.metrics[index]
            value = answer.value
            if answer.nvmlReturn or not math.isfinite(value) or value < 0:
                continue
            if metric in _MIB_PER_S:
                found[_MIB_PER_S[metric]] = value * _MIB
            elif value <= _MOST_PERCENT:
                found[_PERCENT[metric]] = min(value / 100, 1.0)
        return found

    def forget(self) -> None:
        """Begin anew: the next call gives nothing."""
        self._has_older = False

    def free(self) -> None:
        """Give the samples back."""
        for sample in (self._older, self._newer):
            self._nvml.nvmlGpmSampleFree(sample)


def is_supported(nvml: Any, handle: Any) -> bool:
    """Whether the device has GPM. Raises NVMLError."""
    return bool(nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)
