"""One AMD card: what it says about itself, from its files."""

from collections.abc import Callable

from dynolog.model.gpu import GpuReading
from dynolog.sources.amdgpu import attribute_texts
from dynolog.sources.amdgpu.files import CardFiles
from dynolog.sources.amdgpu.firmware import Firmware
from dynolog.sources.amdgpu.kfd import KfdView
from dynolog.sources.attribute import read_attribute, read_integer
from dynolog.sources.drm_cards import DrmCard
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_attribute import OpenAttributes
from dynolog.sources.pcie_link import PcieLink

Values = dict[str, int | float | str]
Counters = dict[str, int | float]
_PWM_FULL = 255


class AmdCard:
    """A card, or a whole socket of an accelerator that is divided into partitions."""

    is_whole = True
    # The firmware is asked for error counters of some fifteen blocks, which takes it milliseconds; the link is asked over the bus.
    SLOW_EVERY_NS = 10_000_000_000

    def __init__(
        self,
        host: HostFiles,
        card: DrmCard,
        *,
        files: OpenAttributes,
        kfd: KfdView,
        firmware: Firmware,
        name: Callable[[], str],
    ) -> None:
        self.firmware = firmware
        self.is_up = True
        self._host = host
        self._card = card
        self._attributes = files
        self._kfd = kfd
        self._find_name = name
        self._name = ""
        self._uuid = ""
        self._files = CardFiles(host, card, files)
        self._status = files.at(host.path(f"{card.device_folder}/power/runtime_status"))
        self._link = PcieLink(host, card.device_folder, files)
        self._steady: Values = {}
        self._slow: Values = {}
        self._errors: Counters = {}
        self._slow_due_ns: int | None = None

    def refresh(self) -> None:
        """Choose files again when some came or went; read what hardly changes, unless that would wake the card."""
        files = CardFiles(self._host, self._card, self._attributes)
        if files.fingerprint != self._files.fingerprint:
            self._files.close()
            self._files = files
        self._name = self._name or self._text("product_name") or self._find_name()
        # Chips without one say 0.
        self._uuid = (self._text("unique_id") or "").removeprefix("0x")
        self._uuid = self._uuid if self._uuid.strip("0") else ""
        if not self._is_asleep():
            self._steady = self._read_steady()

    def read(self, device: str, now_ns: int) -> GpuReading:
        """One reading. A card that sleeps is left asleep: any measurement would wake it."""
        if self._is_asleep():
            self.firmware.forget()
            self.is_up = True
            return self._reading(device, dict(self._steady), {})
        if self._slow_due_ns is None or now_ns >= self._slow_due_ns:
            self._slow_due_ns = now_ns + self.SLOW_EVERY_NS
            self._slow = self._read_slow()
            self._errors = self._read_errors()
        values: Values = {**self._steady, **self._slow}
        for gauge in (*self._files.memory, *self._files.measured):
            number = gauge.file.integer()
            if number is not None:
                values[gauge.name] = number / gauge.divisor if gauge.divisor > 1 else number
        counters: Counters = {}
        self.firmware.add(self._files.table, values, counters, now_ns)
        if refusal := self._files.refusal():
            self.is_up = False
            return self._reading(device, {}, {}, refusal)
        self.is_up = True
        self._add_clocks(values)
        self._derive(values, counters)
        if self._files.counts_replays:
            # Two counters of one thing need not agree; a change between them would look like growth.
            counters.pop("pcie_replays", None)
        counters.update(self._errors)
        return self._reading(device, values, counters)

    def lost(self, device: str) -> GpuReading:
        """It was there and is not."""
        self.is_up = False
        return self._reading(device, {}, {}, "the device has gone: it fell off the bus, or its driver let go of it")

    def close(self) -> None:
        """Close its files."""
        self._files.close()
        self._status.close()
        self._link.close()
        self.firmware.forget()

    def _reading(self, device: str, values: Values, counters: Counters, error: str = "") -> GpuReading:
        nodes = self._kfd.nodes(self._card.pci_address)
        processes = self._kfd.users(nodes[0].gpu_id) if nodes else ()
        if nodes and self._kfd.shows_processes and not error:
            values["gpu_processes"] = len(processes)
        return GpuReading(
            device=device,
            uuid=self._uuid,
            name=self._name,
            pci_bus_id=self._card.pci_address,
            minor=self._card.render_minor,
            is_up=not error,
            error=error,
            values=values,
            counters=counters,
            processes=processes,
        )

    def _is_asleep(self) -> bool:
        return (self._status.read() or b"").strip() == b"suspended"

    def _read_steady(self) -> Values:
        sensors = self._files.sensors
        hottest = sensors.labelled("temp").get("junction") or sensors.labelled("temp").get("edge")
        found: dict[str, int | float | str | None] = {
            "gpu_memory_total_bytes": self._integer("mem_info_vram_total"),
            "gpu_gtt_total_bytes": self._integer("mem_info_gtt_total"),
            "gpu_power_limit": _scaled(sensors.integer("power1_cap"), 1_000_000),
            "gpu_power_limit_max": _scaled(sensors.integer("power1_cap_max"), 1_000_000),
            "gpu_temperature_slowdown_celsius": _scaled(sensors.integer(f"{hottest}_crit"), 1000),
            "gpu_frequency_max_mhz": self._levels("pp_dpm_sclk").max_mhz,
            "gpu_memory_frequency_max_mhz": self._levels("pp_dpm_mclk").max_mhz,
            "gpu_partition_mode": self._text("current_compute_partition"),
            "xgmi_hive_id": self._text("xgmi_hive_info/xgmi_hive_id"),
            **self._link.maxima(),
        }
        if nodes := self._kfd.nodes(self._card.pci_address):
            found["xgmi_peers"] = nodes[0].xgmi_peers
        return {name: value for name, value in found.items() if value is not None and value != ""}

    def _fan_speed(self) -> float | None:
        duty = self._files.sensors.integer("pwm1")
        full = self._files.sensors.integer("pwm1_max") or _PWM_FULL
        return None if duty is None else 100 * duty / full

    def _add_clocks(self, values: Values) -> None:
        """Clocks of cards whose sensors have none: from the level in force, and at last from the firmware's table."""
        for name, file in self._files.clock_levels.items():
            if f"{name}_mhz" not in values:
                current = attribute_texts.clock_levels(file.read() or b"").current_mhz
                fallback = self.firmware.clocks.get(f"{name}_mhz")
                clock = fallback if current is None else current
                if clock is not None:
                    values[f"{name}_mhz"] = clock

    def _derive(self, values: Values, counters: Counters) -> None:
        total, used = values.get("gpu_memory_total_bytes"), values.get("gpu_memory_used_bytes")
        if isinstance(total, int) and isinstance(used, int) and used <= total:
            values["gpu_memory_free_bytes"] = total - used
        # The second die of a package (MI250) is measured with the first, and says 0 of itself.
        if values.get("gpu_power_limit") == 0:
            del values["gpu_power_limit"]
            values.pop("gpu_power_limit_max", None)
            if values.get("gpu_power_draw") == 0:
                del values["gpu_power_draw"]
                counters.pop("gpu_energy_joules", None)

    def _read_slow(self) -> Values:
        values: Values = dict(self._link.now())
        if (fan := self._fan_speed()) is not None:
            values["gpu_fan_speed"] = fan
        if (pages := self._files.bad_pages.read()) is not None:
            values["retired_pages"] = attribute_texts.retired_pages(pages)
        return values

    def _read_errors(self) -> Counters:
        found: dict[str, int | float | None] = {}
        for block, file in self._files.errors.items():
            errors = attribute_texts.block_errors(file.read() or b"")
            found[f"ras_errors_corrected.{block}"] = errors.corrected
            found[f"ras_errors_uncorrected.{block}"] = errors.uncorrected
        # The memory controllers' are what others call ECC errors.
        found["ecc_corrected_errors"] = found.get("ras_errors_corrected.umc")
        found["ecc_uncorrected_errors"] = found.get("ras_errors_uncorrected.umc")
        found["pcie_replays"] = self._integer("pcie_replay_count")
        return {name: count for name, count in found.items() if count is not None}

    def _levels(self, name: str) -> attribute_texts.ClockLevels:
        return attribute_texts.clock_levels(read_attribute(self._path(name)) or b"")

    def _integer(self, name: str) -> int | None:
        return read_integer(self._path(name))

    def _text(self, name: str) -> str | None:
        return self._host.read_text(f"{self._card.device_folder}/{name}")

    def _path(self, name: str) -> str:
        return self._host.path(f"{self._card.device_folder}/{name}")


def _scaled(number: int | None, divisor: int) -> float | None:
    return None if number is None else number / divisor
