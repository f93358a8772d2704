"""Records of devices: one each, one for each job where several share a device, and what `dyno gpus` gets."""

import threading
from collections.abc import Mapping

import pytest

from dynolog.attribution.labelling import DeviceAttribution, DeviceUse
from dynolog.collectors.spec import Collector, CollectorSpec, Context, DeviceReport, DeviceValues, Values
from dynolog.model.clock import SystemClock
from dynolog.model.errors import SourceUnavailable
from dynolog.model.flag import Settings
from dynolog.model.gpu import GpuProcess, GpuReading
from dynolog.model.gpu_view import GpuUse
from dynolog.model.record import Record
from dynolog.model.status import CollectorState
from dynolog.pipeline.collector_run import CollectorRun
from dynolog.pipeline.config import PipelineConfig
from dynolog.pipeline.device_records import DeviceBoard
from dynolog.pipeline.rounds import Pipeline
from dynolog.sources.host_files import HostFiles
from fakes.gpu_children import StillClock

ADA = DeviceUse(labels={"job_id": "7", "username": "ada"}, values={"gpu_memory_used_bytes": 5}, pids=(11, 12))
BOB = DeviceUse(labels={"job_id": "8"}, values={"gpu_memory_used_bytes": 6}, pids=(13,))
READING = GpuReading(device="0", counters={"pcie_replays": 4}, processes=(GpuProcess(pid=11),))


class Attributed:
    """Says what a test says."""

    def __init__(self, *uses: DeviceUse, **labels: str) -> None:
        self.answer = DeviceAttribution(labels=labels, uses=uses)
        self.asked: list[GpuReading] = []

    def labels_for(self, reading: GpuReading) -> DeviceAttribution:
        self.asked.append(reading)
        return self.answer


def report(reading: GpuReading | None = READING, **more: int) -> DeviceReport:
    device = DeviceValues(subject="0", labels={"device": "0"}, values={"gpu_power_draw": 90.5}, reading=reading)
    return DeviceReport({"gpus_seen": 1}, [device], **more)


def records(board: DeviceBoard, made: DeviceReport) -> list[Record]:
    return [device.record(1_000_000) for device in board.records("gpu", "gpu", made, 500)]


def test_a_device_with_one_job_has_one_record_with_its_labels() -> None:
    (record,) = records(DeviceBoard(Attributed(ADA, job_id="7", username="ada")), report())
    assert record == Record(
        wall_ns=1_000_000,
        source="gpu",
        values={"gpu_power_draw": 90.5},
        labels={"device": "0", "job_id": "7", "username": "ada"},
        intervals_ns={"gpu": 500},
        subject="0",
    )


def test_jobs_that_share_a_device_have_a_record_each_for_what_is_theirs() -> None:
    whole, ada, bob = records(DeviceBoard(Attributed(ADA, BOB)), report())
    assert whole.labels == {"device": "0"}
    assert ada.labels == {"device": "0", "job_id": "7", "username": "ada"}
    assert (ada.values, bob.values) == ({"gpu_memory_used_bytes": 5}, {"gpu_memory_used_bytes": 6})
    assert len({whole.about, ada.about, bob.about}) == 3


def test_a_job_of_which_nothing_is_known_alone_has_no_record() -> None:
    unknown = DeviceUse(labels={"job_id": "9"}, pids=(14,))
    assert len(records(DeviceBoard(Attributed(unknown, unknown)), report())) == 1


def test_devices_without_a_reading_are_not_attributed() -> None:
    """A TPU's labels come from its own exporter."""
    labelling = Attributed(ADA, job_id="7")
    (record,) = records(DeviceBoard(labelling), report(reading=None))
    assert record.labels == {"device": "0"}
    assert labelling.asked == []


def test_late_values_carry_their_own_time_and_interval() -> None:
    (record,) = records(DeviceBoard(), report(age_ns=300, interval_ns=9_000))
    assert record.wall_ns == 1_000_000 - 300
    assert record.intervals_ns == {"gpu": 9_000}


def test_the_latest_devices_are_kept_with_their_uses_and_counters() -> None:
    board = DeviceBoard(Attributed(ADA))
    records(board, report())
    (device,) = board.latest("gpu")
    assert device.uses == (GpuUse(labels=ADA.labels, pids=ADA.pids, values=ADA.values),)
    assert device.counters == {"pcie_replays": 4}
    assert device.values == {"gpu_power_draw": 90.5}
    board.forget("gpu")
    assert board.latest("gpu") == ()


class Devices:
    """A collector of two devices."""

    closed = threading.Event()

    def read(self) -> int:
        return 0

    def compute(self, _before: int, _after: int, _elapsed_s: float) -> Values:
        labels: list[Mapping[str, str]] = [{"device": "0"}, {"device": "1"}]
        devices = [DeviceValues(subject=one["device"], labels=one, values={"gpu_up": 1}) for one in labels]
        return DeviceReport({"gpus_seen": 2}, devices)

    def close(self) -> None:
        self.closed.set()


def test_the_pipeline_delivers_devices_beside_its_own_record_and_closes_the_collector() -> None:
    got: list[Record] = []
    complete = threading.Event()

    def deliver(record: Record) -> None:
        got.append(record)
        if record.source == "kernel":
            complete.set()

    def make(_context: Context) -> Collector[int]:
        return Devices()

    spec = CollectorSpec(name="gpu", summary="", needs="", factory=make, metrics=(), device_source="gpu")
    pipeline = Pipeline(
        [spec],
        lambda _spec, notices: Context(host=HostFiles("/"), settings=Settings(()), notices=notices),
        SystemClock(),
        deliver,
        PipelineConfig(interval_s=0.05, enabled=frozenset(("gpu",))),
        board=DeviceBoard(),
    )
    pipeline.start()
    assert complete.wait(30)
    assert pipeline.stop(10)
    assert Devices.closed.is_set()
    first, second, own = got[:3]
    assert [record.about for record in (first, second, own)] == ["0", "1", ""]
    assert first.wall_ns == second.wall_ns == own.wall_ns
    assert own.values == {"gpus_seen": 2}
    assert first.intervals_ns.keys() == {"gpu"}


@pytest.mark.parametrize(("retries_itself", "waits_s"), [(True, [1, 1, 1, 1]), (False, [1, 2, 4, 8])])
def test_a_source_that_retries_by_itself_is_read_at_every_interval(retries_itself: bool, waits_s: list[int]) -> None:
    """Its own delays would be added to the pipeline's."""

    class Gone:
        def read(self) -> int:
            raise SourceUnavailable("gpu", "no driver")

        def compute(self, _before: int, _after: int, _elapsed_s: float) -> Values:
            return {}

    spec = CollectorSpec(
        name="gpu", summary="", needs="", factory=lambda _context: Gone(), metrics=(), retries_itself=retries_itself
    )
    clock = StillClock()
    run = CollectorRun(
        spec, lambda _spec, notices: Context(host=HostFiles("/"), settings=Settings(()), notices=notices), clock
    )
    run.configured_interval_ns = 1_000_000_000
    run.switch(True)
    waits = []
    for _ in waits_s:
        run.begin(clock.now_ns)
        run.finish(run.attempt())
        due_ns = run.due_ns(clock.now_ns, 0, 0)
        assert due_ns is not None
        waits.append(round((due_ns - clock.now_ns) / 1e9))
        clock.now_ns = due_ns
    assert waits == waits_s
    assert run.state is CollectorState.UNAVAILABLE
