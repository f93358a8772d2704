"""Whole collectors and GPU backends on trees of files of which an input changes some."""

import math
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import Collector, CollectorSpec
from dynolog.model.errors import SourceUnavailable
from dynolog.sources.amdgpu.backend import AmdBackend
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.host_files import HostFiles
from dynolog.sources.intel_gpu.backend import IntelBackend
from dynolog.sources.nvidia_proc import mig_capabilities, nvidia_devices
from dynolog.sources.pmu_devices import discover
from dynolog.sources.pmu_events import UnknownEvent, parse_event
from dynolog.sources.pmu_tables import table_of
from dynolog.sources.process import ProcessReader
from dynolog.sources.resctrl import MemoryTraffic
from fakes import amd_trees, big_host, intel_trees, pmu_trees, rdma_trees
from fakes.collector_context import HostTree
from fakes.drm_tree import DrmTree
from fakes.proc_tree import ProcTree
from fuzz.target import Feed, Target

# What cannot be had from a tree of files: they ask the kernel itself, or another process.
NOT_FROM_FILES = frozenset(("ethtool", "filesystem", "perf", "gpu", "tpu", "own"))
_WATCHED: list[tuple[str, set[str]]] = []


def _note_opening(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _WATCHED and isinstance(path := arguments[0], str) and path.startswith(_WATCHED[-1][0]):
        _WATCHED[-1][1].add(path)


def files_opened(root: str, work: Callable[[], object]) -> list[str]:
    """The regular files below `root` that `work` opens."""
    if not _WATCHED:
        sys.addaudithook(_note_opening)
    _WATCHED.append((root, set()))
    work()
    return sorted(path for path in _WATCHED[-1][1] if os.path.isfile(path))


class MutatedTree:
    """Uses a tree as it is, then again with some files replaced: an input is a sequence of file number, length and content."""

    def __init__(self, root: str, use: Callable[[Callable[[], None]], None]) -> None:
        self._use = use
        self._files = files_opened(root, lambda: use(lambda: None))
        self._kept = {path: Path(path).read_bytes() for path in self._files}

    def feed(self, data: bytes) -> None:
        """One input. The first byte says whether the files change before the first reading or between the two."""
        if not data:
            return
        changes = list(self._changes(data[1:]))
        try:
            if data[0] & 1:
                self._write(changes)
                self._use(lambda: None)
            else:
                self._use(lambda: self._write(changes))
        finally:
            self._write([(path, self._kept[path]) for path, _ in changes])

    def _changes(self, data: bytes) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        while len(data) > 2 and len(found) < 8:
            path = self._files[int.from_bytes(data[:2], "little") % len(self._files)]
            # The last one takes what is left.
            length = data[2] if len(data) > data[2] + 6 else len(data)
            found.append((path, data[3 : 3 + length]))
            data = data[3 + length :]
        return found

    @staticmethod
    def _write(changes: list[tuple[str, bytes]]) -> None:
        for path, content in changes:
            with open(path, "wb") as file:
                file.write(content)


def _check_values(values: object) -> None:
    """What a collector gives must be of the declared types: a NaN would end in every exporter."""
    assert isinstance(values, dict)
    for key, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise AssertionError(f"{key} is {value}")
        if not isinstance(value, int | float | str):
            raise TypeError(f"{key} is {value!r}")


def _two_readings(make: Callable[[], Collector[object]], change: Callable[[], None]) -> None:
    collector = make()
    try:
        before = collector.read()
    except SourceUnavailable:
        before = None
    change()
    after = collector.read()
    if before is not None:
        _check_values(collector.compute(before, after, 1.0))


def _host(directory: str) -> str:
    root = Path(directory) / "host"
    big_host.build(root, 0)
    for number, (name, text) in enumerate(rdma_trees.mlx5("mlx5_0").items()):
        if number < 12:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    return str(root)


def _collector(spec: CollectorSpec) -> Target:
    def make(directory: str, _stack: ExitStack) -> Feed:
        root = _host(directory)
        context = HostTree(Path(root)).context()
        return MutatedTree(root, lambda change: _two_readings(lambda: spec.factory(context), change)).feed

    return Target(f"collector_{spec.name}", make, (SourceUnavailable,), largest=1024, share=0.02)


def _gpus(
    backend: type[AmdBackend] | type[IntelBackend], build: Callable[[DrmTree], None]
) -> Callable[[str, ExitStack], Feed]:
    def make(directory: str, _stack: ExitStack) -> Feed:
        tree = DrmTree(Path(directory) / "host")
        build(tree)

        def use(change: Callable[[], None]) -> None:
            gpus = backend(GpuOptions(backend="test", root_dir=str(tree.root)))
            try:
                gpus.open()
                gpus.sample()
                change()
                for reading in gpus.sample().readings:
                    _check_values(reading.values)
                    _check_values(reading.counters)
            finally:
                gpus.close()

        return MutatedTree(str(tree.root), use).feed

    return make


def _amd(tree: DrmTree) -> None:
    amd_trees.kfd_host(tree)
    amd_trees.mi300x(tree, 1, 0x45)
    amd_trees.radeon(tree)


def _intel(tree: DrmTree) -> None:
    intel_trees.max_1550(tree)


def _processor_events(directory: str, _stack: ExitStack) -> Feed:
    pmu_trees.sapphire_rapids(Path(directory))

    def use(change: Callable[[], None]) -> None:
        change()
        host = HostFiles(directory)
        devices = discover(host)
        table_of(host)
        for event in ("cpu/event=0x2e,umask=0x41/", "cycles:u", "topdown-retiring", "uncore_imc/cas_count_read/"):
            parse_event(event, devices)

    return MutatedTree(directory, use).feed


def _processes(directory: str, _stack: ExitStack) -> Feed:
    tree = ProcTree(Path(directory))
    tree.process(1)
    tree.process(41, parent=1)
    tree.process(42, parent=41)
    for name, text in (("driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-1\nDevice Minor: \t 0\n"),
                       ("driver/nvidia-caps/mig-minors", "gpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\n")):  # fmt: skip
        tree.write(f"proc/{name}", text)

    def use(change: Callable[[], None]) -> None:
        change()
        host = HostFiles(directory)
        nvidia_devices(host)
        mig_capabilities(host)
        MemoryTraffic(host)
        ProcessReader(host).facts(42)

    return MutatedTree(directory, use).feed


TARGETS: tuple[Target, ...] = (
    *(_collector(spec) for spec in COLLECTORS if spec.name not in NOT_FROM_FILES),
    Target("amd_tree", _gpus(AmdBackend, _amd), (SourceUnavailable,), largest=1024, share=0.02),
    Target("intel_tree", _gpus(IntelBackend, _intel), (SourceUnavailable,), largest=1024, share=0.02),
    Target("pmu_tree", _processor_events, (UnknownEvent, SourceUnavailable), largest=1024, share=0.02),
    Target("process_tree", _processes, (OSError, ValueError), largest=1024, share=0.1),
)
