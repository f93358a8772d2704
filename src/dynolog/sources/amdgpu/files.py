"""Which files of a card give which value: chosen once, then read every round."""

from collections.abc import Iterable

import msgspec

from dynolog.sources.card_sensors import CardSensors
from dynolog.sources.drm_cards import DrmCard
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_attribute import OpenAttribute, OpenAttributes, refusal

_OWN = (("gpu_device_utilization", "gpu_busy_percent"), ("gpu_memory_utilization", "mem_busy_percent"))
_ERRORS = "_err_count"


class Gauge(msgspec.Struct, frozen=True):
    """A file with one integer; the value under `name` is it divided by `divisor`."""

    name: str
    file: OpenAttribute
    divisor: int = 1


class CardFiles:
    """The files of one card that are read every round."""

    def __init__(self, host: HostFiles, card: DrmCard, files: OpenAttributes) -> None:
        self._host = host
        self._card = card
        self._files = files
        self._names = frozenset(host.list(card.device_folder))
        self.sensors = CardSensors(host, card.device_folder, "amdgpu")
        self.table = self._own("gpu_metrics")
        self.clock_levels = {
            name: file
            for name, level in (("gpu_frequency", "pp_dpm_sclk"), ("gpu_memory_frequency", "pp_dpm_mclk"))
            if (file := self._own(level))
        }
        ras = f"{card.device_folder}/ras"
        blocks = [name for name in host.list(ras) if name.endswith(_ERRORS)]
        self.errors = {name.removesuffix(_ERRORS): self._at(f"{ras}/{name}") for name in blocks}
        self.counts_replays = "pcie_replay_count" in self._names
        self.bad_pages = self._at(f"{ras}/gpu_vram_bad_pages")
        # Of the memory manager: they tell of the driver, not of whether the device answers.
        self.memory = self._gauges(
            ("gpu_memory_used_bytes", "mem_info_vram_used"), ("gpu_gtt_used_bytes", "mem_info_gtt_used")
        )
        self.measured = [*self._gauges(*_OWN), *self._sensor_gauges()]

    @property
    def fingerprint(self) -> tuple[frozenset[str], str, frozenset[str], tuple[str, ...]]:
        """What the choice was made from; another one when files came or went."""
        return self._names, self.sensors.folder, self.sensors.files, tuple(self.errors)

    def close(self) -> None:
        """Close them all."""
        for file in self._all():
            file.close()

    def refusal(self) -> str:
        """Why the device does not answer, when in the last round none of its files did; else ""."""
        asked = [gauge.file for gauge in self.measured]
        return refusal([*asked, self.table] if self.table is not None else asked)

    def _all(self) -> Iterable[OpenAttribute]:
        yield from (gauge.file for gauge in (*self.memory, *self.measured))
        yield from (*self.clock_levels.values(), *self.errors.values(), self.bad_pages)
        if self.table is not None:
            yield self.table

    def _own(self, name: str) -> OpenAttribute | None:
        return self._at(f"{self._card.device_folder}/{name}") if name in self._names else None

    def _at(self, relative: str) -> OpenAttribute:
        return self._files.at(self._host.path(relative))

    def _gauges(self, *wanted: tuple[str, str]) -> list[Gauge]:
        return [Gauge(name, file) for name, attribute in wanted if (file := self._own(attribute))]

    def _sensor_gauges(self) -> list[Gauge]:
        temperatures = self.sensors.labelled("temp")
        clocks = self.sensors.labelled("freq")
        edge = temperatures.get("edge") or ("" if temperatures else "temp1")
        # The junction is the hottest point, by which the clocks are held back; small chips have only the edge.
        candidates = (
            ("gpu_power_draw", ("power1_average", "power1_input"), 1_000_000),
            ("gpu_temperature_celsius", (f"{temperatures.get('junction') or edge}_input",), 1000),
            ("gpu_edge_temperature_celsius", (f"{edge}_input",), 1000),
            ("gpu_memory_temperature_celsius", (f"{temperatures.get('mem')}_input",), 1000),
            ("gpu_fan_rpm", ("fan1_input",), 1),
            ("gpu_frequency_mhz", (f"{clocks.get('sclk')}_input",), 1_000_000),
            ("gpu_memory_frequency_mhz", (f"{clocks.get('mclk')}_input",), 1_000_000),
        )
        return [
            Gauge(name, self._at(self.sensors.path(file)), divisor)
            for name, names, divisor in candidates
            if (file := next(filter(self.sensors.files.__contains__, names), None))
        ]
