"""From what a backend says of its devices to their records."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.collectors import gpu
from dynolog.collectors.gpu_contradiction import Contradictions
from dynolog.collectors.gpu_devices import device_values, labels_of, subject_of
from dynolog.collectors.spec import Context, DeviceReport, DeviceValues
from dynolog.model.errors import FlagError, SourceUnavailable
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.gpu import GpuReading
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Kind, Metric
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_child import ChildFailed
from dynolog.sources.gpu_source import GpuSource
from fakes.collector_context import FakeNotices, HostTree
from fakes.gpu_children import DEADLINE_S, Machine

OURS = {"gpu_up", "gpu_suspect", "dcgm_error", "xid_last_seen_timestamp"}


class Collected:
    """A collector of one backend on a scripted machine; `rounds` are its reports."""

    def __init__(self, tmp_path: Path, backend: str = "dcgm") -> None:
        self.machine = Machine()
        self.declared: list[Metric] = []
        self.notices = FakeNotices()
        self.source = GpuSource(
            GpuOptions(backend=backend, interval_s=10.0), DEADLINE_S, self.machine.clock, self.machine.make_child, 30.0
        )
        host = HostTree(tmp_path).context()
        self.collector = gpu.GpuCollector(
            Context(
                host=host.host,
                settings=host.settings,
                notices=self.notices,
                declare=self.declared.extend,
                gpu=self.source,
            )
        )
        self._before: gpu.GpuSnapshot | None = None

    def round(self, *readings: GpuReading) -> DeviceReport:
        """What the next round gives, 10 s later."""
        self.machine.readings = readings
        self.machine.clock.move(10)
        after = self.collector.read()
        report = self.collector.compute(self._before, after, 10.0) if self._before is not None else DeviceReport({}, ())
        self._before = after
        assert isinstance(report, DeviceReport)
        return report

    def device(self, *readings: GpuReading) -> DeviceValues:
        (device,) = self.round(*readings).devices
        return device


@pytest.fixture
def collected(tmp_path: Path) -> Iterator[Collected]:
    made = Collected(tmp_path)
    yield made
    made.source.close(10)


def reading(device: str = "0", **fields: object) -> GpuReading:
    return GpuReading(device=device, uuid=f"GPU-{device}", **fields)  # type: ignore[arg-type] # what a test says


def test_every_metric_of_the_list_comes_through_with_its_value(collected: Collected) -> None:
    """Levels as they are; counters as what was added in the interval."""
    values: dict[str, int | float | str] = {}
    before: dict[str, int | float] = {}
    after: dict[str, int | float] = {}
    expected: dict[str, int | float | str] = {}
    for number, metric in enumerate(GPU_METRICS):
        key = metric.key("7")
        if metric.name in OURS or metric.name in ("gpu_uuid", "gpu_name", "minor_id"):
            continue
        if metric.kind is Kind.DELTA:
            before[key], after[key], expected[key] = 1000, 1000 + number, number
        else:
            values[key] = expected[key] = f"text {number}" if metric.kind is Kind.LABEL else number + 0.5
    collected.round(reading(values=values, counters=before))
    device = collected.device(reading(name="NVIDIA H200", minor=3, values=values, counters=after))
    assert device.values.pop("xid_last_seen_timestamp.7") == collected.machine.clock.wall_ns() / 1e9
    assert device.values.pop("gpu_suspect") == 0
    assert device.values.pop("gpu_up") == 1
    assert device.values.pop("dcgm_error") == 0
    assert device.values == expected
    assert device.labels == {"device": "0", "gpu_uuid": "GPU-0", "gpu_name": "NVIDIA H200", "minor_id": "3"}


def test_an_xid_keeps_the_time_that_the_backend_gives_it(collected: Collected) -> None:
    collected.round(reading())
    seen = {"xid_last_seen_timestamp.31": 1_700_000_000}
    assert collected.device(reading(values=seen)).values["xid_last_seen_timestamp.31"] == 1_700_000_000


def test_the_host_knows_how_many_there_should_be(collected: Collected) -> None:
    """C03: a card that fell off the bus shows in numbers, not in silence."""
    collected.round(reading("0"), reading("1"))
    report = collected.round(reading("0"), reading("1", is_up=False, error="lost"))
    assert report["gpus_expected"] == 2
    assert report["gpus_seen"] == 1
    assert report["gpu_sample_age_seconds"] == 0
    assert [device.values["gpu_up"] for device in report.devices] == [1, 0]


def test_the_age_of_values_is_told(collected: Collected) -> None:
    collected.round()
    collected.machine.change = lambda sample: msgspec.structs.replace(sample, age_s=3.5)
    report = collected.round()
    assert report["gpu_sample_age_seconds"] == 3.5
    assert report.age_ns == 0


def test_a_late_sample_is_stamped_with_its_own_time(collected: Collected) -> None:
    collected.round(reading())
    taken = collected.source.read()
    collected.machine.clock.move(4)
    collected.source.read = lambda: taken  # type: ignore[method-assign]
    report = collected.round(reading())
    assert report.age_ns == 14_000_000_000
    assert report["gpu_sample_age_seconds"] == 14


def test_a_sample_that_did_not_come_in_time_makes_no_record(collected: Collected) -> None:
    collected.round(reading())
    before = collected.collector.read()
    assert collected.collector.compute(before, before, 10.0) == {}


def test_the_measured_interval_is_that_between_the_samples(collected: Collected) -> None:
    collected.round(reading())
    assert collected.round(reading()).interval_ns == 10_000_000_000


def test_a_blank_in_dcgm_is_told_on_its_devices(collected: Collected, tmp_path: Path) -> None:
    collected.round(reading())
    collected.machine.change = lambda sample: msgspec.structs.replace(sample, blank_values=2)
    assert collected.device(reading()).values["dcgm_error"] == 1
    assert collected.device(reading(values={"dcgm_error": 0})).values["dcgm_error"] == 0
    other = Collected(tmp_path, "nvml")
    other.round(reading())
    assert "dcgm_error" not in other.device(reading()).values
    other.source.close(10)


def test_metrics_and_notices_of_the_backend_are_passed_on(collected: Collected) -> None:
    new = Metric(name="dcgm_field_1099", kind=Kind.GAUGE, unit="1", description="new")
    collected.machine.change = lambda sample: msgspec.structs.replace(
        sample, declared=(new,), notices=(("profiling", "it is taken"),)
    )
    collected.round()
    assert collected.declared == [new]
    assert collected.notices.said == {"profiling": "it is taken"}


def test_a_device_that_is_down_is_said_whoever_reads_it(collected: Collected) -> None:
    """C03: once in the log, with why; in the status until it is back."""
    lost = GpuReading(device="3", uuid="GPU-3", is_up=False, error="it fell off the bus")
    collected.round(reading("2"), lost)
    assert collected.notices.said == {"down 3": "GPU 3 (GPU-3) is down: it fell off the bus"}
    collected.round(reading("2"), reading("3"))
    assert collected.notices.said == {"down 3": ""}


def test_a_notice_is_taken_back_when_the_backend_says_it_no_more(collected: Collected) -> None:
    """The status would tell for ever that another tool holds the profiling hardware."""
    said: tuple[tuple[str, str], ...] = (("profiling", "it is taken"), ("fields", "no field foo"))
    collected.machine.change = lambda sample: msgspec.structs.replace(sample, notices=said)
    collected.round(reading())
    said = said[1:]
    collected.round(reading())
    assert collected.notices.said == {"profiling": "", "fields": "no field foo"}


def test_counters_of_another_backend_are_not_compared(collected: Collected) -> None:
    collected.round(reading(counters={"pcie_replays": 5}))
    collected.machine.change = lambda sample: msgspec.structs.replace(sample, backend="nvml")
    assert "pcie_replays" not in collected.device(reading(counters={"pcie_replays": 9})).values


def test_a_backend_that_is_gone_is_unavailable(collected: Collected) -> None:
    collected.machine.answers["dcgm", "sample"] = ChildFailed("its process ended in sample: SIGSEGV")
    with pytest.raises(SourceUnavailable, match="SIGSEGV"):
        collected.collector.read()


# --- one device -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "growth"),
    [
        (reading(counters={"pcie_replays": 5}), reading(counters={"pcie_replays": 8}), {"pcie_replays": 3}),
        (reading(counters={"pcie_replays": 5}), reading(counters={"pcie_replays": 2}), {}),  # reset
        (reading(), reading(counters={"pcie_replays": 2}), {}),
        (None, reading(counters={"xid_errors.31": 2}), {}),  # new, or a replaced card: nobody knows since when
        (reading(), reading(counters={"xid_errors.31": 2}), {"xid_errors.31": 2}),  # the first of its code
        (reading(counters={"xid_errors.31": 1}), reading(counters={"xid_errors.31": 1}), {"xid_errors.31": 0}),
        # A device that was lost said nothing of its counters...
        (reading(is_up=False), reading(counters={"xid_errors.31": 2}), {}),
        # ...but the Xid with which it falls off the bus counts.
        (reading(), reading(is_up=False, counters={"xid_errors.79": 1}), {"xid_errors.79": 1}),
    ],
)
def test_counters_become_growth(before: GpuReading | None, after: GpuReading, growth: dict[str, int]) -> None:
    values = device_values(before, after, {}).values
    assert {key: value for key, value in values.items() if key != "gpu_up"} == growth


def test_a_replaced_card_has_no_growth(collected: Collected) -> None:
    collected.round(reading(counters={"pcie_replays": 5}))
    other = GpuReading(device="0", uuid="GPU-new", counters={"pcie_replays": 9})
    assert "pcie_replays" not in collected.device(other).values


def test_two_equal_xids_are_two_and_each_is_dated(collected: Collected) -> None:
    """B16: Xid 31 at 10:00 and again at 10:07, then healthy."""
    collected.round(reading())
    first = collected.device(reading(counters={"xid_errors.31": 1})).values
    second = collected.device(reading(counters={"xid_errors.31": 2})).values
    healthy = collected.device(reading(counters={"xid_errors.31": 2})).values
    assert [values["xid_errors.31"] for values in (first, second, healthy)] == [1, 1, 0]
    assert first["xid_last_seen_timestamp.31"] <= second["xid_last_seen_timestamp.31"]  # type: ignore[operator]
    assert healthy["xid_last_seen_timestamp.31"] == second["xid_last_seen_timestamp.31"]


PROFILING = {
    "graphics_engine_active_ratio": 0.0,
    "sm_active_ratio": 0.0,
    "tensorcore_active": 0.0,
    "pcie_tx_bytes": 0.0,
}


@pytest.mark.parametrize(
    ("values", "suspect", "left"),
    [
        ({"gpu_device_utilization": 100, **PROFILING}, 1, set()),
        ({"gpu_device_utilization": 50, **PROFILING}, 1, set()),
        ({"gpu_device_utilization": 49, **PROFILING}, 0, set(PROFILING)),
        ({"gpu_device_utilization": 100, **PROFILING, "sm_active_ratio": 0.001}, 0, set(PROFILING)),
        ({"gpu_device_utilization": 100}, None, set()),
        ({**PROFILING}, None, set(PROFILING)),  # MIG has no utilisation
    ],
)
def test_zeros_of_a_busy_device_are_suspect_and_left_out(
    collected: Collected, values: dict[str, int | float | str], suspect: int | None, left: set[str]
) -> None:
    """B05: utilisation 100 % and every profiling counter 0 on one card in each round, while its neighbour is fine."""
    fine: dict[str, int | float | str] = {"gpu_device_utilization": 100, "sm_active_ratio": 0.5}
    for _ in range(2):
        collected.round(reading("0", values=values), reading("1", values=fine))
    made, neighbour = collected.round(reading("0", values=values), reading("1", values=fine)).devices
    assert made.values.get("gpu_suspect") == suspect
    assert {key for key in made.values if key in PROFILING} == left
    assert (neighbour.values["gpu_suspect"], neighbour.values["sm_active_ratio"]) == (0, 0.5)


def test_zeros_of_a_device_that_has_just_become_busy_are_left_out_and_no_fault(collected: Collected) -> None:
    """B05: a kernel may have started after the counters' window: one round says nothing, two in a row do, and only in a row."""
    idle: dict[str, int | float | str] = {"gpu_device_utilization": 0, **PROFILING}
    odd: dict[str, int | float | str] = {"gpu_device_utilization": 100, **PROFILING}
    collected.round(reading(values=idle))
    made = [collected.device(reading(values=values)).values for values in (idle, odd, idle, odd, odd)]
    assert [values["gpu_suspect"] for values in made] == [0, 0, 0, 0, 1]
    assert ["sm_active_ratio" in values for values in made] == [True, False, True, False, False]


def test_short_rounds_wait_for_as_long_as_utilisation_looks_back() -> None:
    """B05: of the last second: five rounds in which a load that has ended still shows are no fault."""
    odd = reading(values={"gpu_device_utilization": 100, **PROFILING})
    contradictions = Contradictions()
    seen = []
    for number in range(12):
        contradictions = contradictions.after([odd], 1_000_000_000 + number * 200_000_000)
        seen.append(device_values(None, odd, {}, contradictions).values["gpu_suspect"])
    assert seen == [0] * 10 + [1] * 2


def test_instances_have_a_subject_and_labels_of_their_own() -> None:
    """B11."""
    whole = reading("3")
    instance = GpuReading(device="3", uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0)
    assert subject_of(whole) == "3"
    assert subject_of(instance) == "3-gi1-ci0"
    assert labels_of(instance) == {
        "device": "3",
        "gpu_uuid": "MIG-1",
        "gpu_instance_id": "1",
        "compute_instance_id": "0",
    }


def test_labels_among_the_values_are_labels_and_nothing_else() -> None:
    """DCGM gives name, uuid and minor number as fields like any other."""
    made = device_values(None, GpuReading(device="0", values={"gpu_name": "A", "gpu_uuid": "B", "minor_id": "1"}), {})
    assert made.labels == {"device": "0", "gpu_name": "A", "gpu_uuid": "B", "minor_id": "1"}
    assert made.values == {"gpu_up": 1}


@given(st.floats() | st.integers(), st.integers(min_value=0), st.integers(min_value=0))
def test_values_are_finite_and_growth_is_never_negative(value: float, before: int, after: int) -> None:
    made = device_values(
        reading(counters={"pcie_replays": before}), reading(values={"x": value}, counters={"pcie_replays": after}), {}
    ).values
    assert all(isinstance(one, str) or one - one == 0 for one in made.values())
    assert made.get("pcie_replays") == (after - before if after >= before else None)


# --- flags ------------------------------------------------------------------------------------------------------------


def options(**given_flags: FlagValue) -> GpuOptions:
    return gpu.options_of(Settings(gpu.SPEC.flags, given_flags), "/", 10.0)


def test_flags_reach_the_child() -> None:
    made = options(
        dcgm_fields="100, 155,DCGM_FI_DEV_GPU_UTIL", gpu_backend="dcgm", dcgm_standalone_address="/run/dcgm.sock"
    )
    assert made.dcgm_fields == ("100", "155", "DCGM_FI_DEV_GPU_UTIL")
    assert made.dcgm_fields_given
    assert made.dcgm_standalone_address == "/run/dcgm.sock"
    assert not options().dcgm_fields_given
    assert len(options().dcgm_fields) == 17


@pytest.mark.parametrize("backend", ["auto", "dcgm", "nvml", "amd", "intel", "none", "site.gpus:Backend"])
def test_backends_that_may_be_chosen(backend: str) -> None:
    assert options(gpu_backend=backend).backend == backend


@pytest.mark.parametrize(
    "flags", [{"gpu_backend": "cuda"}, {"gpu_backend": "a:b:c"}, {"gpu_backend": ""}, {"dcgm_fields": "100;155"}]
)
def test_flags_that_cannot_be_used_are_refused(flags: dict[str, str]) -> None:
    with pytest.raises(FlagError, match=next(iter(flags))):
        options(**flags)
