"""The fuzz targets: what is in the corpora and what is near it does no harm, and no parser is left out."""

import importlib
import random
import sys
from pathlib import Path

import pytest

from dynolog.model.errors import WireError

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY))

from fuzz.registry import TARGETS  # noqa: E402 - from the repository's root, which no package holds
from fuzz.target import Checker, Target, TooSlow, plain  # noqa: E402

CORPUS = REPOSITORY / "fuzz" / "corpus"
SOURCES = REPOSITORY / "src" / "dynolog" / "sources"
# What has no parser of its own, by the reason.
WITHOUT = {
    "asks the kernel or a library for values that are typed already": (
        "clock_sync", "pidfd", "statvfs", "own_process", "own_program", "own_rights", "beneath",
        "dcgm.backend", "dcgm.connection", "dcgm.library",
        "dcgm.profiling", "dcgm.session", "dcgm.structs", "dcgm.watching", "dcgm.reader", "nvml.backend", "nvml.gpm", "nvml.gpu",
        "nvml.instance", "nvml.memory", "nvml.probes", "nvml.processes", "nvml.rates", "nvml.session", "nvml.xid", "perf_event.bank",
        "perf_event.descriptors", "perf_event.group", "perf_event.one_off", "perf_event.refusal", "perf_event.syscall", "amdgpu.smi",
    ),
    "works on what others have read": (
        "child_output", "dcgm.codes", "dcgm.devices", "dcgm.field_choice", "dcgm.field_names", "dcgm.fields", "dcgm.readings",
        "dcgm.watchdog", "dcgm.xid", "errand", "gpu_access", "gpu_backend", "gpu_candidate", "gpu_files", "gpu_registry", "gpu_source",
        "gpu_worker", "growth", "nvml.backoff", "nvml.context", "nvml.health", "nvml.inventory", "nvml.values", "amdgpu.throttling",
        "heap", "perf_event.attributes", "mount_choice", "sockets_of_cpus",
    ),
    "reads what another target's parser takes apart": ("metrics_page", "pod_resources", "open_files", "process_view"),
    "is read as part of a whole tree of files (kernel_trees.py)": (
        "amdgpu.backend", "amdgpu.card", "amdgpu.files", "amdgpu.firmware", "amdgpu.kfd", "amdgpu.partition", "attribute",
        "card_sensors", "drm_cards", "edac", "gpu_presence", "host_files", "hwmon", "intel_gpu.backend", "intel_gpu.card",
        "intel_gpu.graphics_units", "net_link", "nvidia_proc", "nvml.pci", "open_attribute", "optional_file", "pcie_aer",
        "perf_cgroups", "pmu_devices", "pmu_events", "pmu_names", "pmu_tables", "powercap", "rdma_bytes", "rdma_counters",
        "rdma_net_devices", "resctrl", "sysfs_gpus", "thermal_throttle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_corpus_and_what_is_near_it_does_no_harm(target: Target, tmp_path: Path) -> None:
    """Only declared errors come out, in bounded time."""
    check, luck = Checker(target, str(tmp_path)), random.Random(target.name)
    kept = [path.read_bytes() for path in sorted((CORPUS / target.name).iterdir())]
    try:
        # Slow ones get less, as they do of a long run.
        for data in luck.sample(kept, min(len(kept), 20 if target.share == 1 else 3)):
            check(data)
            check(mutated(data, luck))
    finally:
        check.close()


def mutated(data: bytes, luck: random.Random) -> bytes:
    """A piece replaced, taken out or doubled."""
    start = luck.randrange(len(data) + 1)
    end = min(start + luck.randrange(1, 9), len(data))
    piece = luck.choice((b"", luck.randbytes(end - start), data[start:end] * 2, b"9" * 30, b"-1", b"\xff\x00"))
    return data[:start] + piece + data[end:]


def test_every_parser_is_fuzzed_or_left_out_for_a_reason() -> None:
    modules = {
        ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES.rglob("*.py")
        if path.read_text().count("\n") > 1
    } - {"__init__"}
    fuzzed = {module for target in TARGETS for module in target.modules}
    left_out = [module for reason in WITHOUT.values() for module in reason]
    assert len(left_out) == len(set(left_out))
    assert not fuzzed & set(left_out)
    assert not modules - fuzzed - set(left_out), "give it a target in fuzz/, or say in WITHOUT why it needs none"
    assert not set(left_out) - modules
    for module in fuzzed:
        importlib.import_module(f"dynolog.sources.{module}")


def test_names_are_unique_and_each_target_has_a_corpus() -> None:
    names = [target.name for target in TARGETS]
    assert len(names) == len(set(names))
    assert set(names) >= {path.name for path in CORPUS.iterdir()}
    assert all(any((CORPUS / name).iterdir()) for name in names)


def test_an_error_that_is_not_declared_comes_out(tmp_path: Path) -> None:
    def feed(data: bytes) -> None:
        if data == b"bad":
            raise WireError("declared")
        raise KeyError("not declared")

    check = Checker(plain("x", feed, WireError), str(tmp_path))
    check(b"bad")
    with pytest.raises(KeyError):
        check(b"worse")


def test_quadratic_time_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.target.BASE_S", 0.0)
    monkeypatch.setattr("fuzz.target.PER_KIB_S", 1e-7)
    check = Checker(plain("x", lambda data: data.count(b"b" * 100) + sum(data)), str(tmp_path))
    with pytest.raises(TooSlow):
        for _ in range(200):
            check(b"a" * 100)
