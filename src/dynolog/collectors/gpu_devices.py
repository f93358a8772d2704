"""The arithmetic of a GPU's record: from two readings of one device to its values and labels. Pure."""

import math
from collections.abc import Mapping

from dynolog.collectors.gpu_contradiction import Contradictions, Identity
from dynolog.collectors.spec import DeviceValues, Values
from dynolog.model.gpu import GpuReading

# Counters of these are missing on a device as long as they are 0: the first error of a kind must count.
_FROM_ZERO = ("xid_errors.", "ras_errors_")
XID_PREFIX = "xid_errors."
XID_SEEN_PREFIX = "xid_last_seen_timestamp."
_LABEL_KEYS = ("gpu_name", "gpu_uuid", "minor_id")


def subject_of(reading: GpuReading) -> str:
    """`3` for a device, `3-gi1-ci0` for an instance of it."""
    subject = reading.device
    if reading.gpu_instance_id is not None:
        subject += f"-gi{reading.gpu_instance_id}"
    if reading.compute_instance_id is not None:
        subject += f"-ci{reading.compute_instance_id}"
    return subject


def labels_of(reading: GpuReading) -> dict[str, str]:
    """What names the device; what is not known is left out."""
    labels = {"device": reading.device}
    texts = {
        "gpu_uuid": reading.uuid or reading.values.get("gpu_uuid", ""),
        "gpu_name": reading.name or reading.values.get("gpu_name", ""),
        "minor_id": reading.values.get("minor_id", "") if reading.minor is None else reading.minor,
        "gpu_instance_id": reading.gpu_instance_id,
        "compute_instance_id": reading.compute_instance_id,
    }
    labels.update((name, str(text)) for name, text in texts.items() if text not in ("", None))
    return labels


def device_values(
    before: GpuReading | None,
    after: GpuReading,
    xids_seen: Mapping[str, float],
    contradictions: Contradictions = Contradictions(),  # noqa: B008 - immutable
) -> DeviceValues:
    """One device's record. `before` is its reading before, None for a device that was not there; `xids_seen` by code in Unix time."""
    values: Values = {"gpu_up": int(after.is_up)}
    for key, value in after.values.items():
        if key not in _LABEL_KEYS and (isinstance(value, str) or math.isfinite(value)):
            values[key] = value
    if before is not None:
        _add_growth(values, before, after)
    for code, seen_s in xids_seen.items():
        values.setdefault(XID_SEEN_PREFIX + code, seen_s)
    contradictions.judge(after, values)
    return DeviceValues(subject=subject_of(after), labels=labels_of(after), values=values, reading=after)


def _add_growth(values: Values, before: GpuReading, after: GpuReading) -> None:
    for key, new in after.counters.items():
        old = before.counters.get(key)
        if old is None and key.startswith(_FROM_ZERO) and _counted(before):
            old = 0
        # One that went down was reset: nobody knows from what.
        if old is not None and new >= old:
            values[key] = new - old


def _counted(reading: GpuReading) -> bool:
    """Whether a counter that is missing in it is 0: a device that did not answer says nothing about its counters."""
    return reading.is_up or bool(reading.counters)


class XidLog:
    """When each Xid was last seen on each device: the driver's counters tell how often, not when. Immutable."""

    def __init__(self, seen: Mapping[tuple[Identity, str], float] = {}) -> None:
        self._seen = dict(seen)

    def after(
        self, before: Mapping[Identity, GpuReading], now: Mapping[Identity, GpuReading], wall_s: float
    ) -> "XidLog":
        """The log with what was added between two samples. Devices that have gone are forgotten."""
        seen = {key: value for key, value in self._seen.items() if key[0] in now}
        for identity, reading in now.items():
            old = before.get(identity)
            for key, count in reading.counters.items():
                if (
                    old is not None
                    and _counted(old)
                    and key.startswith(XID_PREFIX)
                    and count > old.counters.get(key, 0)
                ):
                    seen[identity, key.removeprefix(XID_PREFIX)] = wall_s
        return self if seen == self._seen else XidLog(seen)

    def of(self, identity: Identity) -> dict[str, float]:
        """By code, for one device."""
        return {code: wall_s for (of, code), wall_s in self._seen.items() if of == identity} if self._seen else {}
