"""Which trainers hold which GPUs: what the driver lists where a GPU monitor asks it, else the device files that are open."""

from collections.abc import Mapping

from dynolog.model.gpu import GpuSample
from dynolog.model.held_gpu import HeldGpu
from dynolog.profiling.trainer import Trainer

# How much is known: more wins.
NONE, OPEN, LISTED = 0, 1, 2


class GpuHoldings:
    """Read on the socket thread, replaced by the thread that samples GPUs: one reference is handed over, and nobody waits."""

    def __init__(self) -> None:
        self._listed: Mapping[int, tuple[HeldGpu, ...]] = {}

    def put(self, sample: GpuSample | None) -> None:
        """The latest sample, None when there is none any more. From any thread."""
        self._listed = {} if sample is None else listed_by_pid(sample)

    @property
    def has_list(self) -> bool:
        """Whether the driver lists processes at all."""
        return bool(self._listed)

    def of(self, trainer: Trainer) -> tuple[HeldGpu, ...]:
        """What it holds, () when nothing is known. A host pid is the driver's and ours alike; one that a trainer claims is never used."""
        if trainer.verified and (listed := self._listed.get(trainer.host_pid)):
            return listed
        return trainer.details.gpus if trainer.details else ()

    def strength(self, trainer: Trainer) -> int:
        """LISTED, OPEN or NONE."""
        if trainer.verified and trainer.host_pid in self._listed:
            return LISTED
        return OPEN if trainer.details and trainer.details.holds_gpu else NONE


def listed_by_pid(sample: GpuSample) -> dict[int, tuple[HeldGpu, ...]]:
    """The devices of each process that a sample lists. One in a MIG instance holds that, not the device around it."""
    found: dict[int, list[HeldGpu]] = {}
    for reading in sample.readings:
        gpu = HeldGpu(device=reading.device, uuid=reading.uuid, gpu_instance_id=reading.gpu_instance_id, listed=True)
        for process in reading.processes:
            held = found.setdefault(process.pid, [])
            if gpu not in held:
                held.append(gpu)
    return {pid: tuple(_without_split(held)) for pid, held in found.items()}


def _without_split(held: list[HeldGpu]) -> list[HeldGpu]:
    split = {gpu.device for gpu in held if gpu.gpu_instance_id is not None}
    return [gpu for gpu in held if gpu.gpu_instance_id is not None or gpu.device not in split]
