"""Xid errors are counted by device and code."""

from collections.abc import Callable

import pytest

from fakes.nvml.backend_process import WALL_S, BackendProcess

Start = Callable[..., BackendProcess]


def xids(backend: BackendProcess, now_s: float, device: str = "0") -> dict[str, float]:
    reading = backend.readings(now_s)[device]
    found = {**reading.counters, **reading.values}
    return {key: float(value) for key, value in found.items() if key.startswith("xid")}


def test_each_error_is_counted(opened: Start) -> None:
    """B16: 31 at two times is two errors, each with the time of the last; a healthy time in between changes nothing."""
    backend = opened({"count": 2, "events": "1:0:13"})
    assert xids(backend, 0) == {}  # what was before the start is not known
    backend.script.set({"events": "1:0:13,2:0:31,3:1:79,4:0:31,5:0:48"})
    assert xids(backend, 10) == {
        "xid_errors.31": 2,
        "xid_errors.48": 1,
        "xid_last_seen_timestamp.31": WALL_S + 10,
        "xid_last_seen_timestamp.48": WALL_S + 10,
    }
    backend.script.set({"events": "6:0:31"})
    assert xids(backend, 420)["xid_errors.31"] == 3
    assert xids(backend, 430)["xid_last_seen_timestamp.31"] == WALL_S + 420
    assert xids(backend, 430, "1") == {"xid_errors.79": 1, "xid_last_seen_timestamp.79": WALL_S + 10}


def test_a_lost_device_still_tells_its_xids(opened: Start) -> None:
    """B16, C03: Xid 79 comes in the round in which the device goes, and is not counted again when it is back."""
    backend = opened({"count": 2})
    backend.sample(0)
    backend.script.set({"events": "1:0:79", "gpu.0.answers": "!15"})
    reading = backend.readings(10)["0"]
    assert not reading.is_up
    assert reading.counters == {"xid_errors.79": 1}
    backend.script.set({"gpu.0.answers": None})
    assert backend.readings(20)["0"].counters["xid_errors.79"] == 1


def test_counts_outlive_a_session(opened: Start) -> None:
    """A counter never falls; and the new session listens as well."""
    backend = opened({"count": 1, "gpu.0.utilization": 1})
    backend.sample(0)
    backend.script.set({"events": "1:0:31"})
    assert xids(backend, 10)["xid_errors.31"] == 1
    backend.script.set({"all": "!1"})
    answer = backend.ask("sample", 20)
    assert answer.unavailable is not None
    backend.script.set({"all": None})
    assert xids(backend, 30)["xid_errors.31"] == 1
    backend.script.set({"events": "1:0:31,2:0:31"})
    assert xids(backend, 40)["xid_errors.31"] == 2


@pytest.mark.parametrize("count", [1, 500])
def test_all_waiting_events_are_read_in_one_round(opened: Start, count: int) -> None:
    backend = opened({"count": 1})
    backend.sample(0)
    backend.script.set({"events": ",".join(f"{number}:0:31" for number in range(1, count + 1))})
    assert xids(backend, 1)["xid_errors.31"] == count


def test_a_device_without_events_is_said_and_read(opened: Start) -> None:
    backend = opened({"count": 2, "gpu.1.events_supported": 0})
    sample = backend.sample(0)
    assert sample.seen == 2
    assert "Xids of GPU 1 cannot be counted" in dict(sample.notices)["nvml_xid_1"]
    backend.script.set({"events": "1:1:31,2:0:31"})
    assert xids(backend, 1, "1") == {}
    assert xids(backend, 1.1, "0")["xid_errors.31"] == 1
