"""dyno perf: lists of recorded machines, and tables of counts."""

import errno
from pathlib import Path

import pytest

from dynolog.cli.perf.list import named_events, pmu_states, set_states
from dynolog.cli.perf.table import CountedEvent, merged, stat_table
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.attributes import EventSpec
from dynolog.sources.perf_event.one_off import EventCount
from dynolog.sources.pmu_devices import discover
from dynolog.sources.pmu_events import UnknownEvent, parse_event
from dynolog.sources.pmu_tables import table_of
from fakes.perf_kernel import FakePerfKernel
from fakes.pmu_trees import TREES

CYCLES = EventSpec(name="cycles", type=0, config=0, pmu="cpu")
READS = [EventSpec(name="reads", type=30 + n, config=5, pmu=f"imc_{n}", scale=0.5, unit="MiB") for n in range(2)]


def test_each_metric_set_says_what_it_needs_and_what_is_missing(tmp_path: Path) -> None:
    """On a Zen 4 whose kernel counts cycles and instructions only, and the memory channels."""
    TREES["zen4"](tmp_path)
    host = HostFiles(str(tmp_path))
    rates = {(0, 0): 1.0, (0, 1): 1.0} | {
        (20 + channel, config): 1.0 for channel in range(24) for config in (0x10A, 0x20A)
    }
    states = {one.name: one for one in set_states(discover(host), table_of(host), FakePerfKernel(rates))}
    assert states["default"].state == "yes"
    assert states["default"].events == ["cycles", "instructions"]
    assert states["branches"].state == "no"
    assert states["branches"].missing[0].startswith("branches: this machine does not count branch-instructions")
    assert states["membw"].state == "yes"
    assert states["membw"].unverified == ["amd_umc/event=0x0a,rdwrmask=0x1/", "amd_umc/event=0x0a,rdwrmask=0x2/"]
    assert states["power"].state == "no"


def test_a_set_of_which_a_part_is_there(tmp_path: Path) -> None:
    TREES["grace"](tmp_path)
    host = HostFiles(str(tmp_path))
    kernel = FakePerfKernel({(0, 2): 1.0, (0, 3): 1.0})
    cache = next(one for one in set_states(discover(host), table_of(host), kernel) if one.name == "cache")
    assert cache.state == "partly"
    assert "cache-references" in cache.events
    assert any(reason.startswith("l1d: ") for reason in cache.missing)
    assert not kernel.open_counters


def test_pmus_by_family(tmp_path: Path) -> None:
    TREES["sapphire_rapids"](tmp_path)
    states = {state.name: state for state in pmu_states(discover(HostFiles(str(tmp_path))))}
    assert (states["cpu"].kind, states["cpu"].instances) == ("cores", 1)
    assert (states["uncore_imc"].kind, states["uncore_imc"].instances, states["uncore_imc"].events) == (
        "outside the cores",
        12,
        3,
    )
    assert states["software"].kind == "kernel"


@pytest.mark.parametrize("machine", list(TREES))
def test_every_event_that_is_listed_can_be_given(machine: str, tmp_path: Path) -> None:
    TREES[machine](tmp_path)
    host = HostFiles(str(tmp_path))
    devices, processor = discover(host), table_of(host)
    for event in named_events(devices, processor):
        try:
            assert parse_event(event.event, devices, processor.named)
        except UnknownEvent as error:
            assert machine == "odd", error  # its PMU `half` has events of fields that it has not
            assert "half" in event.event


def test_an_event_of_several_pmus_is_one_line() -> None:
    counts = [EventCount(spec, 1.5, 0.5 * number + 0.5, 2) for number, spec in enumerate(READS)]
    (line,) = merged(counts, HostFiles())
    assert line == CountedEvent("reads", 3.0, "MiB", "", 0.75, 4, "")


def test_the_count_of_some_channels_is_not_the_memorys() -> None:
    refusal = OSError(errno.ENODEV, "No such device")
    (line,) = merged(
        [EventCount(READS[0], 1.5, 1.0, 1), EventCount(READS[1], None, None, 0, refusal=refusal)], HostFiles()
    )
    assert line.count is None
    assert "does not count reads" in line.note


def test_an_event_without_a_counter_says_so() -> None:
    (line,) = merged([EventCount(CYCLES, None, 0.0, 1)], HostFiles())
    assert (line.count, line.note) == (None, "no counter was free for it")


def test_the_table_works_out_the_usual_ratios() -> None:
    events = [CountedEvent("cycles", 2000, running_ratio=1.0), CountedEvent("instructions", 1000, running_ratio=0.5)]
    assert stat_table(events, 2.0, None).splitlines() == [
        "event         count   a second  counted",
        "cycles        2,000  1,000.000    100 %",
        "instructions  1,000    500.000     50 %  0.50 in a cycle",
        "2.000 s",
    ]
