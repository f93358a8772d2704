"""What the firmware's table adds to the files of a card, and what it gives in place of those that a card lacks."""

from collections.abc import MutableMapping

from dynolog.sources.amdgpu.gpu_metrics import MetricsTable, UnknownRevision, parse
from dynolog.sources.amdgpu.smi import AmdSmi
from dynolog.sources.amdgpu.throttling import ThrottleTime, active
from dynolog.sources.growth import Growth
from dynolog.sources.open_attribute import OpenAttribute

_JOULES = 2.0**-16
_KB = 1024
_FIRST_SERVER_REVISION = (1, 4)
# Arcturus and Aldebaran (MI100, MI200): their v1.x tables count energy in 2^-16 J as well; other chips' units are not documented.
_SERVER_DEVICES = frozenset((0x7388, 0x738C, 0x738E, 0x7390, 0x7408, 0x740C, 0x740F, 0x7410))
_FALLBACKS = (
    ("gfx_activity_pct", "gpu_device_utilization"),
    ("memory_activity_pct", "gpu_memory_utilization"),
    ("power_watts", "gpu_power_draw"),
    ("hotspot_celsius", "gpu_temperature_celsius"),
    ("memory_celsius", "gpu_memory_temperature_celsius"),
)
_LINK_DOWN, _LINK_UP = 0, 1
Values = MutableMapping[str, int | float | str]


class Firmware:
    """The table of one card. `why_not` is why it cannot be read, "" when it can (or the card has none)."""

    def __init__(self, pci_address: str, device_id: int, smi: AmdSmi) -> None:
        self.why_not = ""
        self.clocks: dict[str, int] = {}
        self.partition_busy_pct: tuple[float | None, ...] = ()
        self._pci_address = pci_address
        self._is_server = device_id in _SERVER_DEVICES
        self._smi = smi
        self._growth = Growth()
        self._throttle_time = ThrottleTime()

    def add(
        self, file: OpenAttribute | None, values: Values, counters: MutableMapping[str, int | float], now_ns: int
    ) -> None:
        """Read the table and add what it has; a value that a file gave already stays."""
        self.clocks = {}
        self.partition_busy_pct = ()
        table = self._read(file)
        if table is None:
            return
        numbers = table.numbers
        for theirs, ours in _FALLBACKS:
            if theirs in numbers and ours not in values:
                values[ours] = numbers[theirs]
        self._set_clocks(table)
        self.partition_busy_pct = table.partition_busy_pct
        if "throttle_bits" in numbers:
            values.update(active(numbers["throttle_bits"]))
        counters.update(self._throttle_time.add(table, now_ns))
        if "pcie_replays" in numbers:
            counters["pcie_replays"] = numbers["pcie_replays"]
        if "energy" in numbers and (self._is_server or table.revision >= _FIRST_SERVER_REVISION):
            counters["gpu_energy_joules"] = numbers["energy"] * _JOULES
        self._add_xgmi(table, values, now_ns)

    def forget(self) -> None:
        """The card sleeps or has gone: the next table begins a new interval."""
        self._growth.forget()
        self._throttle_time.forget()

    def _read(self, file: OpenAttribute | None) -> MetricsTable | None:
        data = None if file is None else file.read()
        if data is None:
            return None
        try:
            table = parse(data)
        except UnknownRevision as error:
            numbers, rows = self._smi.metrics(self._pci_address)
            self.why_not = "" if numbers else f"{error}, and {self._smi.why_not or 'amdsmi does not give it'}"
            return MetricsTable(revision=error.revision, numbers=numbers, rows=rows) if numbers else None
        except ValueError as error:
            self.why_not = str(error)
            return None
        self.why_not = ""
        return table

    def _set_clocks(self, table: MetricsTable) -> None:
        known = [clock for clock in table.rows.get("gfx_clocks_mhz", ()) if clock is not None]
        if known:
            # One for each die; the fastest, as the other makers' single number would be.
            self.clocks["gpu_frequency_mhz"] = max(known)
        elif "gfx_clock_mhz" in table.numbers:
            self.clocks["gpu_frequency_mhz"] = table.numbers["gfx_clock_mhz"]
        if "memory_clock_mhz" in table.numbers:
            self.clocks["gpu_memory_frequency_mhz"] = table.numbers["memory_clock_mhz"]

    def _add_xgmi(self, table: MetricsTable, values: Values, now_ns: int) -> None:
        for row, name in (("xgmi_read_kb", "nvlink_rx_bytes"), ("xgmi_write_kb", "nvlink_tx_bytes")):
            links = [(link, kb) for link, kb in enumerate(table.rows.get(row, ())) if kb is not None]
            rates = [self._growth.per_second(f"{row}.{link}", kb, now_ns) for link, kb in links]
            known = [rate for rate in rates if rate is not None]
            # A sum without one of its links would look like less traffic.
            if known and len(known) == len(links):
                values[name] = sum(known) * _KB
        for link, status in enumerate(table.rows.get("xgmi_link_status", ())):
            if status in (_LINK_DOWN, _LINK_UP):
                values[f"nvlink_is_up.{link}"] = int(status == _LINK_UP)
