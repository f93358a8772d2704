"""One Intel GPU, integrated or on a card: what it says about itself, from the files of xe or i915."""

import re

from dynolog.model.gpu import GpuReading
from dynolog.sources.attribute import read_integer
from dynolog.sources.card_sensors import CardSensors
from dynolog.sources.drm_cards import DrmCard
from dynolog.sources.growth import Growth
from dynolog.sources.host_files import HostFiles
from dynolog.sources.intel_gpu.graphics_units import GraphicsUnit, find_units
from dynolog.sources.open_attribute import OpenAttribute, OpenAttributes, refusal
from dynolog.sources.pcie_link import PcieLink

Values = dict[str, int | float | str]
_TILE = re.compile(r"tile\d+")
# Names of the error counters that Intel's own packages of i915 add: correctable_l3_sng, fatal_guc, sgunit_fatal.
_CORRECTED = "correctable"
_UNCORRECTED = ("fatal", "nonfatal")


class IntelCard:
    """A GPU with the xe or i915 driver."""

    is_whole = True
    SLOW_EVERY_NS = 10_000_000_000

    def __init__(self, host: HostFiles, card: DrmCard, files: OpenAttributes, name: str) -> None:
        self._host = host
        self._card = card
        self._attributes = files
        self._name = name
        self._growth = Growth()
        self._link = PcieLink(host, card.device_folder, files)
        self._status = files.at(host.path(f"{card.device_folder}/power/runtime_status"))
        self._units: list[GraphicsUnit] = []
        self._gauges: dict[str, tuple[OpenAttribute, int]] = {}
        self._energy: OpenAttribute | None = None
        self._steady: Values = {}
        self._slow: Values = {}
        self._errors: dict[str, int | float] = {}
        self._slow_due_ns: int | None = None
        self._failure = ""

    def refresh(self) -> None:
        """Choose the files, and read what hardly changes, unless that would wake the device."""
        self._close_chosen()
        sensors = CardSensors(self._host, self._card.device_folder, self._card.driver)
        if not self._is_asleep():
            self._steady = self._read_steady(sensors)
        self._units = find_units(self._host, self._card, self._attributes)
        self._choose_sensors(sensors)
        self._failure = self._survivability()

    def read(self, device: str, now_ns: int) -> GpuReading:
        """One reading. A device that sleeps is left asleep: any measurement would wake it."""
        if self._failure:
            return self._reading(device, {}, {}, self._failure)
        if self._is_asleep():
            self._growth.forget()
            return self._reading(device, dict(self._steady), {})
        if self._slow_due_ns is None or now_ns >= self._slow_due_ns:
            self._slow_due_ns = now_ns + self.SLOW_EVERY_NS
            self._slow = dict(self._link.now())
            self._errors = self._read_errors()
        values: Values = {**self._steady, **self._slow}
        for name, (file, divisor) in self._gauges.items():
            if (number := file.integer()) is not None:
                values[name] = number / divisor if divisor > 1 else number
        self._add_units(values, now_ns)
        counters: dict[str, int | float] = dict(self._errors)
        self._add_energy(values, counters, now_ns)
        self._add_memory(values)
        return self._reading(device, values, counters, refusal(self._asked()))

    def lost(self, device: str) -> GpuReading:
        """It was there and is not."""
        return self._reading(device, {}, {}, "the device has gone: it fell off the bus, or its driver let go of it")

    def close(self) -> None:
        """Close its files."""
        self._close_chosen()
        self._status.close()
        self._link.close()
        self._growth.forget()

    def _reading(self, device: str, values: Values, counters: dict[str, int | float], error: str = "") -> GpuReading:
        return GpuReading(
            device=device,
            name=self._name,
            pci_bus_id=self._card.pci_address,
            minor=self._card.render_minor,
            is_up=not error,
            error=error,
            values={} if error else values,
            counters={} if error else counters,
        )

    def _is_asleep(self) -> bool:
        return (self._status.read() or b"").strip() == b"suspended"

    def _asked(self) -> list[OpenAttribute]:
        asked = [unit.clock_mhz for unit in self._units]
        asked += [file for file, _ in self._gauges.values()]
        return [*asked, self._energy] if self._energy is not None else asked

    def _close_chosen(self) -> None:
        for file in self._asked():
            file.close()
        for unit in self._units:
            for file in unit.files():
                file.close()

    def _choose_sensors(self, sensors: CardSensors) -> None:
        temperatures = sensors.labelled("temp")
        package = temperatures.get("pkg") or ("" if temperatures else "temp1")
        wanted = (
            ("gpu_temperature_celsius", f"{package}_input", 1000),
            ("gpu_memory_temperature_celsius", f"{temperatures.get('vram')}_input", 1000),
            ("gpu_fan_rpm", "fan1_input", 1),
        )
        self._gauges = {
            name: (self._attributes.at(self._host.path(path)), divisor)
            for name, file, divisor in wanted
            if (path := sensors.path(file))
        }
        energy = sensors.path(f"energy{_channel(sensors)}_input")
        self._energy = self._attributes.at(self._host.path(energy)) if energy else None

    def _read_steady(self, sensors: CardSensors) -> Values:
        folder = self._card.device_folder
        tiles = list(filter(_TILE.fullmatch, self._host.list(folder)))
        sizes = [read_integer(self._host.path(f"{folder}/{tile}/physical_vram_size_bytes")) for tile in tiles]
        memory = sum(size for size in sizes if size) if sizes and None not in sizes else None
        channel = _channel(sensors)
        limit = sensors.integer(f"power{channel}_max") or sensors.integer(f"power{channel}_crit")
        rated = sensors.integer(f"power{channel}_rated_max")
        clocks = [read_integer(self._host.path(f"{folder}/{tile}/memory/freq0/max_freq")) for tile in tiles]
        found: dict[str, float | None] = {
            "gpu_memory_total_bytes": memory or read_integer(self._host.path(f"{self._card.folder}/lmem_total_bytes")),
            "gpu_memory_frequency_max_mhz": max(filter(None, clocks), default=None),
            "gpu_power_limit": limit / 1_000_000 if limit else None,
            "gpu_power_limit_max": rated / 1_000_000 if rated else None,
        }
        return {**{name: value for name, value in found.items() if value}, **self._link.maxima()}

    def _add_units(self, values: Values, now_ns: int) -> None:
        clocks = [clock for unit in self._units if (clock := unit.clock_mhz.integer()) is not None]
        limits = [unit.max_mhz for unit in self._units if unit.max_mhz]
        if clocks:
            values["gpu_frequency_mhz"] = max(clocks)
        if limits:
            values["gpu_frequency_max_mhz"] = max(limits)
        idle = [self._idle_share(unit, now_ns) for unit in self._units]
        known = [share for share in idle if share is not None]
        if known and len(known) == len(idle):
            values["gpu_awake_ratio"] = 1 - sum(known) / len(known)
        for unit in self._units:
            for reason, holds in _held_back(unit).items():
                key = f"gpu_throttle_active.{reason}"
                values[key] = max(holds, int(values.get(key, 0)))

    def _idle_share(self, unit: GraphicsUnit, now_ns: int) -> float | None:
        idle_ms = unit.idle_ms.integer()
        if idle_ms is None:
            return None
        rate = self._growth.per_second(unit.name, idle_ms, now_ns)
        # The counter moves in steps of its own, so a share may come out a little above the whole.
        return None if rate is None else min(rate / 1000, 1.0)

    def _add_energy(self, values: Values, counters: dict[str, int | float], now_ns: int) -> None:
        microjoules = None if self._energy is None else self._energy.integer()
        if microjoules is None:
            return
        joules = microjoules / 1_000_000
        counters["gpu_energy_joules"] = joules
        watts = self._growth.per_second("energy", joules, now_ns)
        if watts is not None:
            values["gpu_power_draw"] = watts

    def _add_memory(self, values: Values) -> None:
        """Only Intel's own packages of i915 say what is free; used memory of xe is known to each program alone."""
        total = values.get("gpu_memory_total_bytes")
        free = read_integer(self._host.path(f"{self._card.folder}/lmem_avail_bytes"))
        if isinstance(total, int) and free is not None and free <= total:
            values["gpu_memory_free_bytes"] = free
            values["gpu_memory_used_bytes"] = total - free

    def _read_errors(self) -> dict[str, int | float]:
        errors: dict[str, int | float] = {}
        for unit in self._host.list(f"{self._card.folder}/gt"):
            folder = f"{self._card.folder}/gt/{unit}/error_counter"
            for name in self._host.list(folder):
                words = name.split("_")
                kind = "corrected" if _CORRECTED in words else "uncorrected" if set(words) & set(_UNCORRECTED) else ""
                count = read_integer(self._host.path(f"{folder}/{name}"))
                if kind and count is not None and count >= 0:
                    block = "_".join(word for word in words if word not in (_CORRECTED, *_UNCORRECTED))
                    key = f"ras_errors_{kind}.{block}"
                    errors[key] = errors.get(key, 0) + count
        return errors

    def _survivability(self) -> str:
        """xe makes this file when the firmware of a card is broken and only a new one can be loaded."""
        mode = self._host.read_text(f"{self._card.device_folder}/survivability_mode")
        return "the card's firmware is broken (survivability mode): load a new one" if mode else ""


def _channel(sensors: CardSensors) -> str:
    """The number of the channel that measures the whole card, else the package; i915 has one, without label."""
    channels = sensors.labelled("energy") or sensors.labelled("power")
    channel = channels.get("card") or channels.get("pkg") or "energy1"
    return channel.removeprefix("energy").removeprefix("power")


def _held_back(unit: GraphicsUnit) -> dict[str, int]:
    status = unit.held_back.integer()
    if status is None:
        return {}
    if status == 0:
        return dict.fromkeys(unit.reasons, 0)
    holds = {reason: file.integer() for reason, file in unit.reasons.items()}
    return {reason: int(bool(flag)) for reason, flag in holds.items() if flag is not None}
