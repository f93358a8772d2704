"""The latest values of each source and device."""

import pytest

from dynolog.model.metric import Catalogue
from dynolog.model.record import Record
from dynolog.pipeline.latest import LatestRecords
from fakes.scripted_collector import ScriptedCollector
from fakes.stepped_time import SteppedTime

SECOND = 1_000_000_000


class View:
    """LatestRecords of two collectors, `cpu` at 1 s and `disk` at 10 s."""

    def __init__(self) -> None:
        self.time = SteppedTime()
        specs = [ScriptedCollector(name, self.time).spec for name in ("cpu", "disk")]
        self.latest = LatestRecords(Catalogue(metric for spec in specs for metric in spec.metrics), specs, self.time)

    def put(self, *, source: str = "kernel", labels: dict[str, str] | None = None, **reads: int) -> None:
        """A record with the reads of the collectors named."""
        self.latest.put(
            Record(
                wall_ns=self.time.wall_ns(),
                source=source,
                values={f"{name}_reads": value for name, value in reads.items()},
                labels=labels or {},
                intervals_ns={name: SECOND if name == "cpu" else 10 * SECOND for name in reads},
            )
        )

    def values(self) -> dict[str, int | float | str]:
        records = self.latest.latest()
        return dict(records[0].values) if records else {}


@pytest.fixture
def view() -> View:
    return View()


def test_values_of_collectors_with_different_intervals_stand_side_by_side(view: View) -> None:
    view.put(cpu=1, disk=100)
    view.time.run(9)
    view.put(cpu=2)
    (record,) = view.latest.latest()
    assert record.values == {"cpu_reads": 2, "disk_reads": 100}
    assert record.wall_ns == view.time.wall_ns()
    assert record.intervals_ns == {"cpu": SECOND, "disk": 10 * SECOND}


def test_values_older_than_three_of_their_own_intervals_are_left_out(view: View) -> None:
    view.put(cpu=1, disk=100)
    view.time.run(3)
    assert view.values() == {"cpu_reads": 1, "disk_reads": 100}
    view.time.run(0.1)
    assert view.values() == {"disk_reads": 100}
    view.time.run(27)
    assert view.latest.latest() == ()


def test_a_value_that_its_collector_no_longer_gives_is_gone_at_once(view: View) -> None:
    view.latest.put(
        Record(
            wall_ns=1,
            source="kernel",
            values={"cpu_reads": 1, "cpu_elapsed_s": 1.0},
            intervals_ns={"cpu": SECOND, "disk": SECOND},
        )
    )
    view.put(cpu=2)
    assert view.values() == {"cpu_reads": 2}


def test_a_step_of_the_wall_clock_makes_nothing_stale_or_fresh(view: View) -> None:
    view.put(cpu=1)
    view.time.step_wall(3600)
    assert view.values() == {"cpu_reads": 1}
    view.time.step_wall(-7200)
    view.time.run(4)
    assert view.values() == {}


def test_each_source_and_device_has_its_own_record(view: View) -> None:
    for device in ("0", "1"):
        view.put(source="gpu", labels={"device": device, "job_id": "7"})
    view.put(source="gpu", labels={"device": "1", "job_id": "8"})
    view.put(cpu=1)
    assert [(record.source, dict(record.labels)) for record in view.latest.latest()] == [
        ("gpu", {"device": "0", "job_id": "7"}),
        ("gpu", {"device": "1", "job_id": "8"}),
        ("kernel", {}),
    ]
    assert [record.source for record in view.latest.latest("kernel")] == ["kernel"]
    assert view.latest.latest("nothing") == ()


def test_a_source_without_an_interval_is_shown_for_three_minutes(view: View) -> None:
    view.put(source="gpu")
    view.time.run(179)
    assert len(view.latest.latest()) == 1
    view.time.run(2)
    assert view.latest.latest() == ()


def test_a_key_that_nothing_declares_belongs_to_the_newest_record(view: View) -> None:
    view.put(disk=5, mystery=1)
    assert view.values() == {"disk_reads": 5, "mystery_reads": 1}
    view.time.run(0.1)
    view.put(cpu=1)
    assert view.values() == {"disk_reads": 5, "cpu_reads": 1}
