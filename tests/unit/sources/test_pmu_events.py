"""Events by name, as what the kernel is asked to count."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.attributes import EventSpec
from dynolog.sources.pmu_devices import PmuDevices, discover
from dynolog.sources.pmu_events import UnknownEvent, parse_event, split_events
from fakes.pmu_trees import TREES


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PmuDevices]:
    found = {}
    for name, write in TREES.items():
        root = tmp_path_factory.mktemp(name)
        write(root)
        found[name] = discover(HostFiles(str(root)))
    return found


def words(specs: tuple[EventSpec, ...]) -> list[tuple[int, int, int]]:
    return [(spec.type, spec.config, spec.config1) for spec in specs]


@pytest.mark.parametrize(
    ("machine", "text", "expected"),
    [
        ("sapphire_rapids", "cycles", [(0, 0, 0)]),
        ("sapphire_rapids", "branch-misses", [(0, 5, 0)]),
        ("sapphire_rapids", "LLC-load-misses", [(3, 0x10002, 0)]),
        ("sapphire_rapids", "dTLB-stores", [(3, 0x103, 0)]),
        ("sapphire_rapids", "page-faults", [(1, 2, 0)]),
        ("sapphire_rapids", "r01c7", [(4, 0x1C7, 0)]),
        ("sapphire_rapids", "cpu/config=0x01c7,config1=0x5/", [(4, 0x1C7, 5)]),
        ("sapphire_rapids", "cpu/event=0xa3,umask=4,cmask=0x4,inv/", [(4, 0x048004A3, 0)]),
        ("sapphire_rapids", "cpu/mem-loads,ldlat=30/", [(4, 0x1CD, 30)]),
        ("sapphire_rapids", "power/energy-ram/", [(17, 3, 0)]),
        ("sapphire_rapids", "sched:sched_switch", [(2, 316, 0)]),
        ("sapphire_rapids", "topdown-retiring", [(4, 0x8000, 0)]),
        ("sapphire_rapids", "energy-pkg", [(17, 2, 0)]),
        ("hybrid_client", "instructions", [(0, 10 << 32 | 1, 0), (0, 4 << 32 | 1, 0)]),
        ("hybrid_client", "L1-dcache-loads", [(3, 10 << 32, 0), (3, 4 << 32, 0)]),
        ("hybrid_client", "rc0", [(10, 0xC0, 0), (4, 0xC0, 0)]),
        ("hybrid_client", "topdown-bad-spec", [(10, 0x73, 0), (4, 0x8100, 0)]),
        ("hybrid_client", "cpu/event=0xc4/", [(10, 0xC4, 0), (4, 0xC4, 0)]),
        ("hybrid_client", "cpu_atom/event=0xc4/", [(10, 0xC4, 0)]),
        ("zen4", "cpu/event=0x1a0,umask=0x1e/", [(4, 0x1_0000_1EA0, 0)]),
        ("zen4", "amd_df/event=0x1f,umask=0xffe/", [(12, 0xF00FE1F, 0)]),
        ("grace", "stall_slot", [(10, 0x3F, 0)]),
        ("grace", "cycles", [(0, 0, 0)]),
        ("grace", "armv8_pmuv3_0/event=0x80c0,long=1/", [(10, 0x80C0, 1)]),
        ("grace", "nvidia_scf_pmu/cmem_rd_data/", [(12, 0x1A5, 0)]),
        ("odd", "r11", [(8, 0x11, 0)]),
    ],
)
def test_words_of_an_event(
    machines: dict[str, PmuDevices], machine: str, text: str, expected: list[tuple[int, int, int]]
) -> None:
    assert words(parse_event(text, machines[machine])) == expected


def test_an_event_of_many_memory_channels_is_one_spec_each_with_its_own_cpus(machines: dict[str, PmuDevices]) -> None:
    specs = parse_event("uncore_imc/cas_count_read/", machines["sapphire_rapids"])
    assert [spec.pmu for spec in specs] == [f"uncore_imc_{number}" for number in range(12)]
    assert {(spec.cpus, spec.scale, spec.unit) for spec in specs} == {((0, 56), 6.103515625e-5, "MiB")}
    assert {spec.cpus for spec in parse_event("amd_umc/event=0x0a,rdwrmask=1/", machines["zen4"])} == {(0,), (96,)}


def test_hybrid_events_know_their_core_type(machines: dict[str, PmuDevices]) -> None:
    """E09: each core type is counted on its own CPUs."""
    specs = parse_event("cycles", machines["hybrid_client"])
    assert {spec.core_type: spec.cpus for spec in specs} == {"core": tuple(range(16)), "atom": tuple(range(16, 24))}


@pytest.mark.parametrize(
    ("text", "user", "kernel", "hypervisor"),
    [
        ("cycles:u", False, True, True),
        ("cpu/event=0xc0/k", True, False, True),
        ("cpu/event=0xc0/:uk", False, False, True),
        ("instructions:G", False, False, False),
    ],
)
def test_modifiers(machines: dict[str, PmuDevices], text: str, user: bool, kernel: bool, hypervisor: bool) -> None:
    (spec,) = parse_event(text, machines["sapphire_rapids"])
    assert (spec.exclude_user, spec.exclude_kernel, spec.exclude_hv) == (user, kernel, hypervisor)


@pytest.mark.parametrize(
    ("machine", "text", "sentence"),
    [
        ("sapphire_rapids", "cylces", "did you mean cycles"),
        ("sapphire_rapids", "cpu/event=0xc7,umsk=1/", "cpu has no field 'umsk': did you mean umask"),
        ("sapphire_rapids", "uncore_icm/cas_count_read/", "no PMU 'uncore_icm': did you mean uncore_imc"),
        (
            "sapphire_rapids",
            "uncore_imc/cas_count_raed/",
            "uncore_imc_0 has no event 'cas_count_raed': did you mean cas_count_read",
        ),
        ("sapphire_rapids", "cpu/event=0x1c7/", "event: 0x1c7 does not fit into 8 bits"),
        ("sapphire_rapids", "cpu/event=lots/", "a number of at most 64 bits belongs there"),
        ("sapphire_rapids", "cycles:x", "there are no tracepoints cycles:"),
        ("sapphire_rapids", "cpu/event=1/x", "'x' is no modifier"),
        ("sapphire_rapids", "sched:sched_swich", "no tracepoint 'sched_swich': did you mean sched_switch"),
        ("sapphire_rapids", "shed:sched_switch", "did you mean sched"),
        ("odd", "uncore_empty/reads/", "uncore_empty cannot be used: none of its CPUs is online"),
        ("odd", "half/domain/", "say a value for event, as in event=1"),
        ("odd", "half/odd_field/", "half_0 has no field 'bad'"),
        ("odd", "", "no such event"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_near(
    machines: dict[str, PmuDevices], machine: str, text: str, sentence: str
) -> None:
    with pytest.raises(UnknownEvent) as failure:
        parse_event(text, machines[machine])
    assert sentence in str(failure.value)


def test_tracepoints_that_cannot_be_seen_say_how_to_see_them(tmp_path: Path) -> None:
    with pytest.raises(UnknownEvent, match="mount -t tracefs"):
        parse_event("sched:sched_switch", discover(HostFiles(str(tmp_path))))


def test_names_of_a_table(machines: dict[str, PmuDevices]) -> None:
    (spec,) = parse_event("fp.double", machines["zen4"], {"fp.double": "cpu/event=0x03,umask=0x1f/"})
    assert (spec.name, spec.config) == ("fp.double", 0x1F03)


def test_names_of_kernel_and_table_take_modifiers_too(machines: dict[str, PmuDevices]) -> None:
    (spec,) = parse_event("fp.double:u", machines["zen4"], {"fp.double": "cpu/event=0x03,umask=0x1f/"})
    assert (spec.name, spec.config, spec.exclude_kernel) == ("fp.double:u", 0x1F03, True)
    (spec,) = parse_event("stall_slot:k", machines["grace"])
    assert (spec.config, spec.exclude_user) == (0x3F, True)


@given(st.text(alphabet="cpu/event=0x1,:urk-LLsd_.ghij?", max_size=40))
def test_any_text_is_an_event_or_unknown(machines: dict[str, PmuDevices], text: str) -> None:
    for devices in machines.values():
        try:
            specs = parse_event(text, devices)
        except UnknownEvent as error:
            assert str(error)
            continue
        assert specs
        assert all(0 <= word < 2**64 for spec in specs for word in (spec.config, spec.config1, spec.config2))


@given(st.lists(st.sampled_from(["cycles", "cpu/event=0xc0,umask=1/", "r1", "a:b", "x/,/u"]), max_size=6))
def test_commas_between_slashes_belong_to_the_event(events: list[str]) -> None:
    assert split_events(",".join(events)) == events
    assert split_events(", ".join(events) + ",") == events
