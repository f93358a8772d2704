"""What reading GPUs costs us: the daemon's part and our part of the child process, without any vendor's library below it.

Prints one JSON object, in ms of CPU for one round. The child has a backend whose devices are ready; the floor is the same sample, only
encoded and decoded.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from dynolog.collectors.gpu import GpuCollector
from dynolog.collectors.spec import Context, DeviceReport
from dynolog.model.clock import SystemClock
from dynolog.model.flag import Settings
from dynolog.model.gpu import GpuProcess, GpuReading, GpuSample
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Kind, Scope
from dynolog.pipeline.device_records import DeviceBoard
from dynolog.pipeline.notice_board import NoticeBoard
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_child import GpuChild
from dynolog.sources.gpu_source import GpuSource
from dynolog.sources.host_files import HostFiles

HERE = Path(__file__).resolve().parent
DEVICES = "DYNOLOG_BENCH_GPUS"
FIELDS = 20
# Rounds back to back would find everything in the caches, as a daemon never does.
PAUSE_S = 0.02


class ReadyBackend:
    """So many devices with 20 fields, of which four are counters that grow; made anew for each round, as a backend must."""

    def __init__(self, _options: GpuOptions) -> None:
        keys = [one.name for one in GPU_METRICS if one.scope is Scope.GPU and one.kind not in (Kind.DELTA, Kind.LABEL)]
        self._keys = [key for key in keys if key not in ("gpu_up", "gpu_suspect", "dcgm_error")][: FIELDS - 4]
        self._counters = [one.name for one in GPU_METRICS if one.scope is Scope.GPU and one.kind is Kind.DELTA][:4]
        self._devices = int(os.environ[DEVICES])
        self._round = 0

    def open(self) -> None:
        pass

    def sample(self) -> GpuSample:
        self._round += 1
        values = {key: 0.125 * self._round + place for place, key in enumerate(self._keys)}
        counters = {key: self._round * (place + 1) for place, key in enumerate(self._counters)}
        readings = tuple(
            GpuReading(
                device=str(device),
                uuid=f"GPU-{device:032x}",
                name="NVIDIA H200",
                minor=device,
                values=dict(values),
                counters=dict(counters),
                processes=(GpuProcess(pid=1000 + device, used_memory_bytes=1 << 33),),
            )
            for device in range(self._devices)
        )
        return GpuSample(backend="ready", readings=readings, expected=self._devices, seen=self._devices)

    def pause_profiling(self) -> bool:
        return True

    def resume_profiling(self) -> bool:
        return True

    def close(self) -> None:
        pass


def ran_ns(pid: int) -> int:
    """CPU time of a process of one thread (first field of /proc/PID/schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def measure(devices: int, rounds: int) -> dict[str, float]:
    """CPU of the two sides and wall time, each for one round of read, compute and records."""
    os.environ[DEVICES] = str(devices)
    os.environ["PYTHONPATH"] = str(HERE)
    children: list[GpuChild] = []

    def make_child(backend: str) -> GpuChild:
        children.append(GpuChild(backend))
        return children[-1]

    source = GpuSource(GpuOptions(backend="gpu_sample:ReadyBackend"), 10.0, SystemClock(), make_child, 30.0)
    context = Context(host=HostFiles("/"), settings=Settings(()), notices=NoticeBoard("gpu"), gpu=source)
    collector, board = GpuCollector(context), DeviceBoard()
    before = collector.read()
    walls_ms = []
    daemon_ns, child_ns = time.process_time_ns(), ran_ns(children[0].pid)
    for _ in range(rounds):
        time.sleep(PAUSE_S)
        started = time.perf_counter()
        after = collector.read()
        report = collector.compute(before, after, 1.0)
        assert isinstance(report, DeviceReport)
        made = [device.record(1) for device in board.records("gpu", "gpu", report, 10**9)]
        walls_ms.append((time.perf_counter() - started) * 1000)
        assert len(made) == devices
        before = after
    daemon_ms = (time.process_time_ns() - daemon_ns) / rounds / 1e6
    child_ms = (ran_ns(children[0].pid) - child_ns) / rounds / 1e6
    source.close(5)
    assert after.sampled is not None
    return {
        "daemon_ms": daemon_ms,
        "child_ms": child_ms,
        "wall_ms": sorted(walls_ms)[rounds // 2],
        "floor_ms": floor_ms(after.sampled.sample, rounds),
    }


def floor_ms(sample: GpuSample, rounds: int) -> float:
    """CPU of one encoding and decoding."""
    started_ns = time.process_time_ns()
    for _ in range(rounds):
        msgspec.msgpack.decode(msgspec.msgpack.encode(sample), type=GpuSample)
    return (time.process_time_ns() - started_ns) / rounds / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.devices, arguments.rounds)))
