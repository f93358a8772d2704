"""One MIG instance of a GPU: its memory and its activity. NVML has no utilisation for it."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dynolog.model.gpu import GpuProcess, GpuReading
from dynolog.sources.nvml.context import SessionContext
from dynolog.sources.nvml.errors import NO_SUCH_FUNCTION, NOT_HERE, DeviceLostError
from dynolog.sources.nvml.gpm import GpmSampler
from dynolog.sources.nvml.memory import MEMORY, MEMORY_WITH_RESERVED
from dynolog.sources.nvml.processes import ListedProcess
from dynolog.sources.nvml.values import Gathered


class MigInstance:
    """A compute instance in a GPU instance. `sampler` is None where GPM does not measure it alone."""

    def __init__(self, context: SessionContext, handle: Any, sampler: GpmSampler | None) -> None:
        """Raises NVMLError."""
        nvml = context.nvml
        self._context = context
        self.handle = handle
        self._sampler = sampler
        self._guard = context.guard()
        self.uuid = str(nvml.nvmlDeviceGetUUID(handle))
        self.name = str(context.optional(nvml.nvmlDeviceGetName, handle) or "")
        self.gpu_instance_id = int(nvml.nvmlDeviceGetGpuInstanceId(handle))
        self.compute_instance_id = int(nvml.nvmlDeviceGetComputeInstanceId(handle))

    def read(self, parent: GpuReading, processes: tuple[GpuProcess, ...] | None) -> GpuReading:
        """A reading, in which what is not of the instance is `parent`'s. Never raises. `processes` None: the driver lists none."""
        gathered = Gathered()
        self._guard.start_round()
        try:
            if not self._guard.run(MEMORY, self.handle, gathered):
                self._guard.run(MEMORY_WITH_RESERVED, self.handle, gathered)
            self._guard.check_answers()
        except DeviceLostError as error:
            return self.lost(msgspec.structs.replace(parent, error=str(error)))
        if self._sampler is not None:
            try:
                gathered.values.update(self._sampler.read())
            except self._context.nvml.NVMLError:
                self._sampler.forget()
        if processes is not None:
            gathered.put("gpu_processes", len(processes))
        return msgspec.structs.replace(
            self._identified(parent), values=gathered.values, counters={}, processes=processes or ()
        )

    def lost(self, parent: GpuReading) -> GpuReading:
        """That it says nothing, because of the error in `parent`."""
        if self._sampler is not None:
            self._sampler.forget()
        return msgspec.structs.replace(self._identified(parent), is_up=False, values={}, counters={}, processes=())

    def _identified(self, parent: GpuReading) -> GpuReading:
        return msgspec.structs.replace(
            parent,
            uuid=self.uuid,
            name=self.name,
            gpu_instance_id=self.gpu_instance_id,
            compute_instance_id=self.compute_instance_id,
        )

    @property
    def has_sampler(self) -> bool:
        """Whether its activity is measured."""
        return self._sampler is not None

    def renewed(self, newer: "MigInstance") -> "MigInstance":
        """This one, with the handle that was found now."""
        self.handle = newer.handle
        return self

    def free(self) -> None:
        """Let go of it. Raises NVMLError."""
        if self._sampler is not None:
            self._sampler.free()


class MigInstances:
    """All instances of one GPU. An instance keeps its sampler from round to round."""

    def __init__(self, context: SessionContext, gpu_handle: Any, *, has_gpm: bool) -> None:
        self._context = context
        self._gpu_handle = gpu_handle
        self._has_gpm = has_gpm
        self._is_mig = False
        self._instances: list[MigInstance] = []

    def __iter__(self) -> Iterator[MigInstance]:
        return iter(self._instances)

    def refresh(self) -> bool:
        """Look for them anew; whether the GPU is in MIG mode. Never raises."""
        nvml = self._context.nvml
        try:
            is_mig = bool(nvml.nvmlDeviceGetMigMode(self._gpu_handle)[0] == 1)
            found = self._found() if is_mig else []
        except nvml.NVMLError as error:
            if error.value not in NOT_HERE and error.value not in NO_SUCH_FUNCTION:
                return self._is_mig  # an error of the moment: those that were there are still there
            is_mig, found = False, []
        self._is_mig = is_mig
        known = {instance.uuid: instance for instance in self._instances}
        kept = [known[instance.uuid].renewed(instance) if instance.uuid in known else instance for instance in found]
        self._free(instance for instance in (*found, *self._instances) if instance not in kept)
        self._instances = kept
        return is_mig

    def _found(self) -> list[MigInstance]:
        nvml = self._context.nvml
        handles = []
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(self._gpu_handle)):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._gpu_handle, index)
                handles.append((handle, int(nvml.nvmlDeviceGetGpuInstanceId(handle))))
            except nvml.NVMLError:
                continue  # no instance has this number
        found = []
        for handle, gpu_instance_id in handles:
            # GPM measures GPU instances: with several compute instances in one, nobody can tell whose activity it is.
            is_alone = [number for _, number in handles].count(gpu_instance_id) == 1
            try:
                sampler = GpmSampler(nvml, self._gpu_handle, gpu_instance_id) if self._has_gpm and is_alone else None
                found.append(MigInstance(self._context, handle, sampler))
            except nvml.NVMLError:
                continue  # it went while it was looked at
        return found

    def owner_of(self, process: ListedProcess) -> MigInstance | None:
        """The instance that a process runs on."""
        ids = (process.gpu_instance_id, process.compute_instance_id)
        return next((one for one in self._instances if (one.gpu_instance_id, one.compute_instance_id) == ids), None)

    def close(self) -> None:
        """Let go of all. Never raises."""
        self._free(self._instances)
        self._instances = []

    def _free(self, instances: Iterable[MigInstance]) -> None:
        for instance in instances:
            try:
                instance.free()
            except self._context.nvml.NVMLError:
                continue  # the driver has gone, and its memory with it
