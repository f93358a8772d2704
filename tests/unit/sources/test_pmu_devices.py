"""Discovery of PMUs on recorded machines, odd ones among them."""

from pathlib import Path

import pytest

from dynolog.sources.host_files import HostFiles
from dynolog.sources.pmu_devices import NamedEvent, PmuDevices, discover
from fakes.pmu_trees import TREES


def machine(root: Path, name: str) -> PmuDevices:
    TREES[name](root)
    return discover(HostFiles(str(root)))


def test_a_server_has_many_instances_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    devices = machine(tmp_path, "sapphire_rapids")
    channels = devices.instances("uncore_imc")
    assert [device.name for device in channels] == [f"uncore_imc_{number}" for number in range(12)]
    assert channels[11].type == 41
    assert channels[0].where == (0, 56)
    assert [device.name for device in devices.instances("uncore_imc_7")] == ["uncore_imc_7"]
    assert not devices.unusable


def test_scale_and_unit_of_an_event(tmp_path: Path) -> None:
    devices = machine(tmp_path, "sapphire_rapids")
    assert devices.devices["uncore_imc_0"].events["cas_count_read"] == NamedEvent(
        "cas_count_read", "event=0x05,umask=0xcf", 6.103515625e-5, "MiB"
    )
    assert set(devices.devices["power"].events) == {"energy-pkg", "energy-ram"}
    assert devices.devices["cpu"].events["slots"].unit == ""


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("sapphire_rapids", {"cpu": (None, "")}),
        ("hybrid_client", {"cpu_core": (tuple(range(16)), "core"), "cpu_atom": (tuple(range(16, 24)), "atom")}),
        ("zen4", {"cpu": (None, "")}),
        ("grace", {"armv8_pmuv3_0": (tuple(range(72)), "")}),
        ("odd", {"armv8_pmuv3_0": ((0, 1, 2, 3), "")}),
    ],
)
def test_core_pmus_and_their_cpus(
    tmp_path: Path, name: str, cores: dict[str, tuple[tuple[int, ...] | None, str]]
) -> None:
    """E09: each core PMU of a hybrid processor has its own CPUs."""
    found = machine(tmp_path, name).cores
    assert {core.name: (core.where, core.core_type) for core in found} == cores


def test_odd_pmus_cost_only_themselves(tmp_path: Path) -> None:
    """E10: an empty cpumask, missing, wrong and unreadable files."""
    devices = machine(tmp_path, "odd")
    assert devices.unusable == {
        "uncore_empty": "none of its CPUs is online",
        "offline_cores": "none of its CPUs is online",
        "no_type": "its type is '', no number",
        "word_type": "its type is 'eleven', no number",
        "no_files": "its type cannot be read",
        "unreadable": "/sys/bus/event_source/devices/unreadable/cpumask cannot be read: Is a directory",
        "bad_mask": "/sys/bus/event_source/devices/bad_mask/cpumask holds no list of CPUs: '0-x'",
    }
    half = devices.devices["half_0"]
    assert set(half.formats) == {"event"}
    assert set(half.events) == {"good", "domain", "odd_field"}, "a scale that cannot be read makes an event meaningless"
    assert devices.devices["bare"].events == {} == devices.devices["bare"].formats


def test_a_kernel_without_perf_events_has_none(tmp_path: Path) -> None:
    devices = discover(HostFiles(str(tmp_path)))
    assert not devices.devices
    assert not devices.cores


def test_what_a_pmu_can_do(tmp_path: Path) -> None:
    assert machine(tmp_path, "grace").devices["armv8_pmuv3_0"].caps == {"slots": "0x00000008"}


def test_this_machine(tmp_path: Path) -> None:
    """A kernel with perf_event has at least the software PMU."""
    devices = discover(HostFiles())
    if not (Path("/sys/bus/event_source/devices/software")).exists():
        pytest.skip("this kernel has no perf_event")
    assert devices.devices["software"].type == 1
    assert devices.devices["tracepoint"].type == 2
