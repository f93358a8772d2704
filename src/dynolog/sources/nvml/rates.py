"""Bytes a second over PCIe and NVLink from counters, for devices without GPM."""

from typing import Any

from dynolog.sources.nvml.field_values import Field, FieldReader
from dynolog.sources.nvml.values import Gathered

_ALL_LINKS = 0xFFFFFFFF
_PCIE_TX, _PCIE_RX = 197, 198  # PCIE_COUNT_TX_BYTES, _RX_BYTES
_KIB = 1024
# nvmlDeviceGetPcieThroughput is not used: it watches the link for 20 ms a call.
_FIELDS: dict[Field, tuple[str, int]] = {
    (138, _ALL_LINKS): ("nvlink_tx_bytes", _KIB),  # NVLINK_THROUGHPUT_DATA_TX
    (139, _ALL_LINKS): ("nvlink_rx_bytes", _KIB),
    (_PCIE_TX, 0): ("pcie_tx_bytes", 1),
    (_PCIE_RX, 0): ("pcie_rx_bytes", 1),
}


class LinkRates:
    """Rates of one GPU over the time between two rounds. A counter that went back gives no value."""

    def __init__(self, nvml: Any) -> None:
        # In 32 bits the bytes of a PCIe link of generation 5 wrap after 70 ms.
        self._reader = FieldReader(nvml, _FIELDS, only_wide=frozenset({_PCIE_TX, _PCIE_RX}))
        self._before: dict[Field, int | float] = {}
        self._before_s = 0.0

    def ask_again(self) -> None:
        """Look anew for what the device did not have."""
        self._reader.ask_again()

    def read(self, handle: Any, now_s: float, gathered: Gathered) -> None:
        """Add the rates since the last call. Raises NVMLError."""
        before, self._before = self._before, {}
        self._before = self._reader.read(handle)
        elapsed_s = now_s - self._before_s
        self._before_s = now_s
        for field, count in self._before.items():
            if field in before and count >= before[field] and elapsed_s > 0:
                name, unit_bytes = _FIELDS[field]
                gathered.put(name, (count - before[field]) * unit_bytes / elapsed_s)

    def forget(self) -> None:
        """Begin anew: the next call gives nothing."""
        self._before = {}
