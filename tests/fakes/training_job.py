"""Traces of a training job that never ran: a host that launches, streams that work in order, collectives that end together.

    job = TrainingJob(ranks=4)
    job.slow_ranks[2] = 1.3
    paths = job.write(directory)

A job as it is made is clean: nothing in it should stand out. Each field plants one fault. Times in µs.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
BEGIN_US = 1_750_000_000_000_000.0
_COMPUTE, _COMMUNICATE = 7, 20


class TrainingJob:
    """What the job is like. A step: next batch, copy it, forward and backward of `kernels` kernels, one all-reduce beside the last ones."""

    def __init__(self, ranks: int = 1, steps: int = 10) -> None:
        self.ranks = ranks
        self.steps = steps
        self.kernels = 40
        self.kernel_us = 400.0
        self.operator_us = 20.0
        self.loader_us = 100.0
        self.copy_us = 150.0
        self.copy_kind = "Pinned"
        self.transfer_us = 3_000.0
        self.overlapped = True
        self.pause_us = 0.0  # the host does something else after a third of its launches
        self.pause_call = ""  # what of the runtime it is in meanwhile; nothing when ""
        self.prelude_us = 0.0  # the host compiles before all
        self.waits = True  # the host, for the device at the end of each step
        self.work: Callable[[int, int], float] = lambda rank, step: (
            1.0
        )  # how much longer a rank's kernels take in a step
        self.barrier_us = 0.0  # the same, in a barrier of the host
        self.stall_us = 0.0  # the device waits for something before the kernel in the middle
        self.late: Callable[[int, int], float] = lambda rank, step: 0.0  # what the data loader needs more
        self.syncs = 0  # `.item()` so often a step
        self.answer_us = 300.0  # what the host then does with it
        self.slow_ranks: dict[int, float] = {}  # rank → how much longer its kernels take
        self.slow_loaders: dict[int, float] = {}  # rank → µs
        self.slow_steps: dict[int, float] = {}
        self.slow_kernels: dict[str, float] = {}
        self.renamed: dict[int, dict[str, str]] = {}  # rank → kernels that run under another name
        self.clock_us: dict[int, float] = {}  # rank → how far its clock is ahead
        self.hosts: dict[int, str] = {}
        self.counters: list[tuple[str, Callable[[float], float]]] = []  # metric, value at a share of the recording
        self.marks = True
        self.decimals = 3  # of times

    def write(self, directory: Path) -> list[str]:
        """One file a rank."""
        directory.mkdir(parents=True, exist_ok=True)
        paths = []
        for rank, events in enumerate(self.events()):
            path = directory / f"rank{rank}.json"
            path.write_text(json.dumps(self._document(rank, events)))
            paths.append(str(path))
        return paths

    def _document(self, rank: int, events: list[Event]) -> dict[str, Any]:
        document: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": self.ranks},
            "traceEvents": events,
        }
        if rank in self.hosts:
            document["host_name"] = self.hosts[rank]
        return document

    def events(self) -> list[list[Event]]:
        """The events of each rank."""
        machines = [_Rank(self, rank) for rank in range(self.ranks)]
        for step in range(self.steps):
            for machine in machines:
                machine.compute(step)
            arrivals = [machine.arrival() for machine in machines]
            end = max(arrivals) + self.transfer_us
            for machine, arrival in zip(machines, arrivals, strict=True):
                machine.collective(step, arrival, end)
                machine.finish(step)
        for machine in machines:
            machine.sample_counters()
        return [machine.shifted() for machine in machines]


class _Rank:
    """A host thread and two streams of one rank."""

    def __init__(self, job: TrainingJob, rank: int) -> None:
        self._job = job
        self._rank = rank
        self.events: list[Event] = []
        self._host = BEGIN_US
        self._free = {_COMPUTE: BEGIN_US, _COMMUNICATE: BEGIN_US}
        self._kernels: list[tuple[float, float]] = []
        self._correlation = 0
        self._step_begin = BEGIN_US
        if job.prelude_us:
            self._add("cpu_op", "compile", BEGIN_US - job.prelude_us, job.prelude_us)

    def compute(self, step: int) -> None:
        job = self._job
        self._step_begin = self._host
        loader = job.slow_loaders.get(self._rank, job.loader_us) + job.late(self._rank, step)
        self._add(
            "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", self._host, loader
        )
        self._host += loader
        self._copy()
        self._kernels = []
        for number in range(job.kernels):
            if job.pause_us and number == job.kernels // 3:
                begin = max(self._host, self._free[_COMPUTE])
                if job.pause_call:
                    self._add("cuda_runtime", job.pause_call, begin, job.pause_us)
                self._host = begin + job.pause_us
            if job.barrier_us and number == job.kernels // 3:
                begin = self._host = max(self._host, self._free[_COMPUTE])
                self._add("cpu_op", "c10d::barrier", begin, job.barrier_us)
                self._host += job.barrier_us
            if number == job.kernels // 2:
                self._free[_COMPUTE] += job.stall_us
            if job.syncs and number and number % (job.kernels // job.syncs) == 0:
                self._item()
            name = f"gemm_{number % 8}"
            factor = (
                job.slow_ranks.get(self._rank, 1.0) * job.slow_kernels.get(name, 1.0) * job.slow_steps.get(step, 1.0)
            )
            factor *= job.work(self._rank, step)
            wobble = 1 + 0.01 * math.sin(step * 40 + number)
            self._kernel(job.renamed.get(self._rank, {}).get(name, name), job.kernel_us * factor * wobble)

    def _copy(self) -> None:
        job = self._job
        begin = max(self._host + 12, self._free[_COMPUTE])
        self._launch("aten::copy_", "cudaMemcpyAsync")
        name = f"Memcpy HtoD ({job.copy_kind} -> Device)"
        size = int(job.copy_us * (20_000 if job.copy_kind == "Pinned" else 2_000))
        rate = {"bytes": size, "memory bandwidth (GB/s)": size / job.copy_us / 1000}
        self._on_device("gpu_memcpy", name, _COMPUTE, begin, job.copy_us, rate)

    def _kernel(self, name: str, duration: float) -> None:
        begin = max(self._host + 12, self._free[_COMPUTE] + 1)
        self._launch("aten::mm", "cudaLaunchKernel")
        self._on_device("kernel", name, _COMPUTE, begin, duration, {})
        self._kernels.append((begin, begin + duration))

    def _item(self) -> None:
        begin = self._host
        end = max(begin + 5, self._free[_COMPUTE] + 5)
        self._add("cpu_op", "aten::item", begin, end - begin + 2)
        self._add("cuda_runtime", "cudaStreamSynchronize", begin + 1, end - begin, correlation=0)
        self._host = end + self._job.answer_us

    def _launch(self, operator: str, call: str) -> None:
        self._correlation += 1
        self._add("cpu_op", operator, self._host, self._job.operator_us - 1, **{"External id": self._correlation})
        self._add("cuda_runtime", call, self._host + 5, 5, correlation=self._correlation)
        self._host += self._job.operator_us

    def arrival(self) -> float:
        """When the all-reduce can begin here: beside the last half of the kernels, or after all of them."""
        place = len(self._kernels) // 2 if self._job.overlapped else len(self._kernels) - 1
        return max(self._kernels[place][1], self._free[_COMMUNICATE]) + 2

    def collective(self, step: int, begin: float, end: float) -> None:
        self._correlation += 1
        self._add("cuda_runtime", "cudaLaunchKernel", self._host, 5, correlation=self._correlation)
        self._host += 8
        facts = {
            "Collective name": "allreduce",
            "In msg nelems": 25_000_000,
            "Out msg nelems": 25_000_000,
            "Group size": self._job.ranks,
            "dtype": "Float",
            "Process Group Name": "0",
        }
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        self._on_device("kernel", name, _COMMUNICATE, begin, end - begin, facts)

    def finish(self, step: int) -> None:
        done = max(self._free.values())
        if self._job.waits:
            self._add("cuda_runtime", "cudaDeviceSynchronize", self._host, max(done - self._host, 0) + 3, correlation=0)
            self._host = max(self._host, done) + 5
        if self._job.marks:
            self._add("user_annotation", f"ProfilerStep#{step}", self._step_begin, self._host - self._step_begin)
        self._host += 1

    def _on_device(
        self, category: str, name: str, stream: int, begin: float, duration: float, facts: dict[str, Any]
    ) -> None:
        arguments = {"device": 0, "stream": stream, "correlation": self._correlation, "External id": self._correlation}
        self.events.append(_event(category, name, (0, stream), begin, duration, arguments | facts))
        self._free[stream] = begin + duration

    def _add(self, category: str, name: str, begin: float, duration: float, **arguments: Any) -> None:
        self.events.append(_event(category, name, (1000 + self._rank, 1), begin, duration, arguments))

    def sample_counters(self) -> None:
        whole = self._host - BEGIN_US
        for metric, value in self._job.counters:
            for place in range(200):
                at = BEGIN_US + whole * place / 200
                self.events.append(
                    {
                        "ph": "C",
                        "name": f"host {metric}",
                        "pid": -1,
                        "tid": 0,
                        "ts": at,
                        "args": {"value": value(place / 200)},
                    }
                )

    def shifted(self) -> list[Event]:
        ahead = self._job.clock_us.get(self._rank, 0.0)
        return [self._rounded(event, event["ts"] + ahead) for event in self.events]

    def _rounded(self, event: Event, begin: float) -> Event:
        """Begin and end are rounded, so that what followed another still does."""
        decimals = self._job.decimals
        begins = round(begin, decimals)
        if "dur" not in event:
            return event | {"ts": begins}
        return event | {"ts": begins, "dur": round(round(begin + event["dur"], decimals) - begins, decimals)}


def _event(
    category: str, name: str, track: tuple[int, int], begin: float, duration: float, arguments: dict[str, Any]
) -> Event:
    process, thread = track
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": duration,
        "args": arguments,
    }
