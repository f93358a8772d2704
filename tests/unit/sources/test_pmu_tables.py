"""Tables of processors: each entry has its sources, and is an event that the kernel would take."""

import os
from pathlib import Path

import pytest

from dynolog.sources import pmu_tables
from dynolog.sources.host_files import HostFiles
from dynolog.sources.pmu_devices import discover
from dynolog.sources.pmu_events import parse_event
from dynolog.sources.pmu_tables import NAMES, NO_TABLE, identify, load, table_of
from fakes.pmu_trees import DEVICES, TREES, PmuTree, grace, sapphire_rapids, zen4


def machine_of(table: str, root: Path) -> PmuTree:
    """A recorded tree of the table's vendor."""
    if table.startswith("arm"):
        return grace(root)
    return zen4(root) if table.startswith("amd") else sapphire_rapids(root)


@pytest.mark.parametrize("name", NAMES)
def test_each_entry_opens_on_a_machine_of_its_kind(name: str, tmp_path: Path) -> None:
    machine_of(name, tmp_path)
    devices = discover(HostFiles(str(tmp_path)))
    table = load(name)
    assert table.name
    for event, entry in table.events.items():
        specs = parse_event(event, devices, table.named)
        assert specs
        assert {spec.name for spec in specs} == {event}
        assert entry.description
        assert entry.sources, "no number without its source"
        assert len(set(entry.sources)) == len(entry.sources)
    weighted = {**table.operations, **table.read_bytes, **table.write_bytes, **table.moved_bytes}
    assert set(weighted) <= set(table.events)
    assert all(weight > 0 for weight in weighted.values())
    assert bool(table.dispatch_slots) == bool(table.dispatch_slots_sources)


def test_every_data_file_is_known() -> None:
    directory = os.path.dirname(pmu_tables.__file__)
    assert {name.removesuffix(".json") for name in os.listdir(directory) if name.endswith(".json")} == set(NAMES)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "85"}, "intel_skylake_server"),
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "207"}, "intel_sapphire_rapids"),
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "173"}, "intel_granite_rapids"),
        ({"vendor_id": "GenuineIntel", "cpu family": "6", "model": "151"}, ""),
        ({"vendor_id": "AuthenticAMD", "cpu family": "23", "model": "1"}, "amd_zen1"),
        ({"vendor_id": "AuthenticAMD", "cpu family": "23", "model": "49"}, "amd_zen2"),
        ({"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "33"}, "amd_zen3"),
        ({"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "97"}, "amd_zen4"),
        ({"vendor_id": "AuthenticAMD", "cpu family": "26", "model": "2"}, "amd_zen5"),
        ({"CPU implementer": "0x41", "CPU part": "0xd0c"}, "arm_neoverse_n1"),
        ({"CPU implementer": "0x4e", "CPU part": "0x010"}, ""),
        ({}, ""),
    ],
)
def test_processors_by_their_numbers(fields: dict[str, str], name: str) -> None:
    """E10: a processor without a table is fine."""
    assert identify(fields) == name


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("sapphire_rapids", "Intel Sapphire Rapids or Emerald Rapids"),
        ("zen4", "AMD Zen 4"),
        ("grace", "ARM Neoverse V2 (NVIDIA Grace)"),
        ("hybrid_client", ""),
        ("odd", ""),
    ],
)
def test_the_table_of_a_recorded_machine(machine: str, name: str, tmp_path: Path) -> None:
    TREES[machine](tmp_path)
    assert table_of(HostFiles(str(tmp_path))).name == name


def test_a_machine_that_does_not_say_what_it_is(tmp_path: Path) -> None:
    assert table_of(HostFiles(str(tmp_path))) is NO_TABLE


def test_words_of_numbers_from_the_manuals(tmp_path: Path) -> None:
    """A few by hand: raw codes as the vendors' documents print them."""
    zen4(tmp_path)
    devices = discover(HostFiles(str(tmp_path)))
    named = load("amd_zen4").named
    assert [spec.config for spec in parse_event("no_ops_from_frontend", devices, named)] == [0x1_0000_01A0]
    assert [spec.config for spec in parse_event("fp_ops", devices, named)] == [0x1F03]
    assert {spec.config for spec in parse_event("memory_writes", devices, named)} == {0x20A}
    assert len(parse_event("memory_reads", devices, named)) == 24
    assert (tmp_path / DEVICES / "amd_umc_23").is_dir()


def test_an_entry_from_one_place_is_unverified() -> None:
    assert not load("amd_zen4").events["memory_reads"].verified
    assert load("amd_zen4").events["backend_stalls"].verified
