"""One whole GPU of a session: what is read each round, what seldom, and its MIG instances."""

from collections.abc import Callable
from typing import Any

from dynolog.model.gpu import GpuReading
from dynolog.sources.nvml import probes
from dynolog.sources.nvml.context import SessionContext
from dynolog.sources.nvml.errors import DeviceLostError
from dynolog.sources.nvml.field_values import Field, FieldReader
from dynolog.sources.nvml.gpm import GpmSampler, is_supported
from dynolog.sources.nvml.health import Health, health_probe
from dynolog.sources.nvml.instance import MigInstance, MigInstances
from dynolog.sources.nvml.inventory import KnownGpu
from dynolog.sources.nvml.memory import MEMORY, MEMORY_WITH_RESERVED, RESERVED_IS_INSIDE
from dynolog.sources.nvml.processes import ListedProcess, merge
from dynolog.sources.nvml.rates import LinkRates
from dynolog.sources.nvml.values import Gathered

# NVML_FI_DEV_*: memory temperature, energy in mJ, and power in mW without the averaging of nvmlDeviceGetPowerUsage.
_MEMORY_TEMPERATURE, _ENERGY, _POWER_INSTANT = (82, 0), (83, 0), (186, 0)
_FIELDS: tuple[Field, ...] = (_MEMORY_TEMPERATURE, _ENERGY, _POWER_INSTANT)
# Error counters and the list of instances.
_HEALTH_S = 10.0
# Limits, maxima, and whether the device has by now what it did not have.
_SELDOM_S = 300.0


class Gpu:
    """A device with a handle of this session."""

    def __init__(self, context: SessionContext, handle: Any, known: KnownGpu) -> None:
        nvml = context.nvml
        self._context = context
        self._handle = handle
        self.known = known
        self._guard = context.guard()
        self._fields = FieldReader(nvml, _FIELDS)
        self._health = Health(nvml)
        self._health_probe = health_probe(self._health)
        self._rates = LinkRates(nvml)
        has_gpm = bool(self._optional(lambda handle: is_supported(nvml, handle)))
        self._sampler: GpmSampler | None = self._optional(lambda handle: GpmSampler(nvml, handle)) if has_gpm else None
        self._instances = MigInstances(context, handle, has_gpm=has_gpm)
        self._is_mig = False
        self._seldom = Gathered()
        self._health_found = Gathered()
        self._next_seldom_s = self._next_health_s = float("-inf")
        self.blank = 0
        # The NVML error for which it did not answer last time, 0 when it did.
        self.lost_code = 0

    def _optional(self, call: Callable[[Any], Any]) -> Any:
        return self._context.optional(call, self._handle)

    @property
    def is_profiled(self) -> bool:
        """Whether SM activity and the like are measured."""
        return self._sampler is not None or any(instance.has_sampler for instance in self._instances)

    @property
    def is_kept_awake(self) -> bool:
        """False when the driver lets the device go to sleep as soon as nobody uses it (persistence mode is off)."""
        return bool(self._optional(self._context.nvml.nvmlDeviceGetPersistenceMode) != 0)

    def listen(self) -> None:
        """Count its Xids from now on. Raises NVMLError."""
        self._context.xids.register(self._handle, self.known.uuid)

    def read(self, now_s: float, extra: Gathered) -> list[GpuReading]:
        """A reading of the GPU and one of each MIG instance. Never raises. `extra` is known without asking the device."""
        try:
            gathered = self._gather(now_s)
        except DeviceLostError as error:
            self._forget_means()
            self.lost_code = error.code
            lost = self.known.lost(str(error), extra)
            return [lost, *(instance.lost(lost) for instance in self._instances)]
        self.lost_code = 0
        gathered.add(extra)
        listed = self._optional(self._context.processes.read)
        if listed is not None:
            gathered.put("gpu_processes", len(merge(listed)))
        self.blank = gathered.blank
        mine = [process for process in listed or () if self._instances.owner_of(process) is None]
        reading = self.known.reading(gathered, merge(mine))
        return [reading, *(self._read_instance(instance, reading, listed) for instance in self._instances)]

    def _read_instance(
        self, instance: MigInstance, parent: GpuReading, listed: list[ListedProcess] | None
    ) -> GpuReading:
        on_it = None
        if listed is not None:
            on_it = merge(process for process in listed if self._instances.owner_of(process) is instance)
        return instance.read(parent, on_it)

    def _gather(self, now_s: float) -> Gathered:
        """All values of the GPU itself. Raises DeviceLostError."""
        if now_s >= self._next_seldom_s:
            self._read_seldom(now_s)
        if now_s >= self._next_health_s:
            self._read_health(now_s)
        gathered = Gathered()
        gathered.add(self._seldom)
        gathered.add(self._health_found)
        # What is asked each round tells whether the device answers at all.
        self._guard.start_round()
        self._read_plain(gathered)
        self._guard.check_answers()
        self._read_activity(gathered, now_s)
        return gathered

    def _read_plain(self, gathered: Gathered) -> None:
        run, handle = self._guard.run, self._handle
        for probe in probes.EACH_ROUND:
            run(probe, handle, gathered)
        if not run(probes.EVENT_REASONS, handle, gathered):
            run(probes.THROTTLE_REASONS, handle, gathered)
        if not run(MEMORY, handle, gathered) and run(MEMORY_WITH_RESERVED, handle, gathered):
            self._context.notices.say(*RESERVED_IS_INSIDE)
        found = self._optional(self._fields.read) or {}
        gathered.put("gpu_memory_temperature_celsius", found.get(_MEMORY_TEMPERATURE))
        gathered.put("gpu_power_draw", found.get(_POWER_INSTANT), 1000)
        gathered.count("gpu_energy_joules", found.get(_ENERGY), 1000)
        if _POWER_INSTANT not in found:
            run(probes.POWER, handle, gathered)
        if _ENERGY not in found:
            run(probes.ENERGY, handle, gathered)

    def _read_activity(self, gathered: Gathered, now_s: float) -> None:
        try:
            if self._sampler is not None:
                gathered.values.update(self._sampler.read())
            elif not self._is_mig:
                self._rates.read(self._handle, now_s, gathered)
        except self._context.nvml.NVMLError:
            return  # both begin anew then

    def _forget_means(self) -> None:
        """What the device does when it is back must not be averaged with the time before."""
        if self._sampler is not None:
            self._sampler.forget()
        self._rates.forget()

    def _read_seldom(self, now_s: float) -> None:
        self._guard.ask_again()
        self._fields.ask_again()
        self._health.ask_again()
        self._rates.ask_again()
        self._seldom = Gathered()
        for probe in probes.SELDOM:
            self._guard.run(probe, self._handle, self._seldom)
        self._next_seldom_s = now_s + _SELDOM_S

    def _read_health(self, now_s: float) -> None:
        found = Gathered()
        self._guard.run(self._health_probe, self._handle, found)
        self._health_found = found
        self._is_mig = self._instances.refresh()
        self._next_health_s = now_s + _HEALTH_S

    def close(self) -> None:
        """Let go of everything. Never raises."""
        self._instances.close()
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            self._optional(lambda _: sampler.free())
