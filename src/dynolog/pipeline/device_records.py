"""Records of single devices: who uses one is looked up, its labels are put on, and the latest of all are kept for `dyno gpus`."""

import threading
from collections.abc import Mapping, Sequence

import msgspec

from dynolog.attribution.labelling import DeviceAttribution, Labelling, NoLabelling
from dynolog.collectors.spec import DeviceReport, DeviceValues, Values
from dynolog.model.gpu_view import GpuDevice, GpuUse
from dynolog.model.record import Record

_NOBODY = DeviceAttribution()
# Jobs on one device that get records of their own; a device shared by more is somebody's mistake.
_MOST_USES = 64


class DeviceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that lacks only the time: `age_ns` before its round."""

    source: str
    subject: str
    labels: Mapping[str, str]
    values: Values
    intervals_ns: Mapping[str, int]
    age_ns: int = 0

    def record(self, round_wall_ns: int) -> Record:
        """The record of a round at this time."""
        return Record(
            wall_ns=round_wall_ns - self.age_ns,
            source=self.source,
            values=self.values,
            labels=self.labels,
            intervals_ns=self.intervals_ns,
            subject=self.subject,
        )


class DeviceBoard:
    """Makes the records of a report; `labelling` tells who uses a device. Used by the pipeline's workers, read from any thread."""

    def __init__(self, labelling: Labelling | None = None) -> None:
        self._labelling = labelling or NoLabelling()
        self._lock = threading.Lock()
        self._latest: dict[str, tuple[GpuDevice, ...]] = {}

    def records(self, collector: str, source: str, report: DeviceReport, elapsed_ns: int) -> tuple[DeviceRecord, ...]:
        """One for each device, and with two and more jobs on it one for each of them, with what is known for the job alone."""
        made: list[DeviceRecord] = []
        shown: list[GpuDevice] = []
        intervals_ns = {collector: report.interval_ns or elapsed_ns}
        for device in report.devices:
            found = _NOBODY if device.reading is None else self._labelling.labels_for(device.reading)
            labels = {**device.labels, **found.labels}
            uses = found.uses if len(found.uses) > 1 else ()
            parts = [(device.subject, labels, device.values)]
            parts += [_part(device, found, place) for place in range(min(len(uses), _MOST_USES))]
            made += [
                DeviceRecord(
                    source=source,
                    subject=subject,
                    labels=labels,
                    values=values,
                    intervals_ns=intervals_ns,
                    age_ns=report.age_ns,
                )
                for subject, labels, values in parts
                if values
            ]
            shown.append(_shown(device, labels, found))
        with self._lock:
            self._latest[collector] = tuple(shown)
        return tuple(made)

    def latest(self, collector: str) -> Sequence[GpuDevice]:
        """The devices of a collector's last report."""
        with self._lock:
            return self._latest.get(collector, ())

    def forget(self, collector: str) -> None:
        """It was switched off."""
        with self._lock:
            self._latest.pop(collector, None)


def _part(device: DeviceValues, found: DeviceAttribution, place: int) -> tuple[str, dict[str, str], Values]:
    """What is known of one use alone. Its labels name it; where they do not, its place does."""
    use = found.uses[place]
    name = "-".join(use.labels[key] for key in sorted(use.labels)) or str(place)
    return f"{device.subject}-use-{name}", {**device.labels, **found.labels, **use.labels}, dict(use.values)


def _shown(device: DeviceValues, labels: Mapping[str, str], found: DeviceAttribution) -> GpuDevice:
    reading = device.reading
    return GpuDevice(
        subject=device.subject,
        labels=labels,
        values=device.values,
        counters=reading.counters if reading is not None else {},
        is_up=reading.is_up if reading is not None else True,
        error=reading.error if reading is not None else "",
        uses=tuple(GpuUse(labels=use.labels, pids=use.pids, values=use.values) for use in found.uses),
    )
