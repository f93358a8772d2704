"""The daemon's measurement of itself, from hand-made counters."""

from collections.abc import Sequence

import msgspec
import pytest

from dynolog.collectors.own import METRICS, OwnCollector, OwnSnapshot
from dynolog.collectors.spec import Values
from dynolog.model.metric import Catalogue
from dynolog.model.status import LOSS_REASONS, CollectorState, CollectorStatus, ExporterState, ExporterStatus, IpcStatus
from dynolog.sources.own_process import OwnProcess
from fakes.collector_context import HostTree


def collector_status(name: str, state: CollectorState, **fields: float) -> CollectorStatus:
    return CollectorStatus(name=name, state=state, interval_s=1, configured_interval_s=1, **fields)  # type: ignore[arg-type]


def snapshot(
    cpu_ms: int = 0,
    collectors: Sequence[CollectorStatus] = (),
    exporters: Sequence[ExporterStatus] = (),
    records: int | None = None,
    wakeups: int = 0,
) -> OwnSnapshot:
    return OwnSnapshot(
        process=OwnProcess(cpu_ns=cpu_ms * 1_000_000, wakeups=wakeups, rss_bytes=20_000_000, threads=5, open_files=33),
        records=records,
        collectors={status.name: status for status in collectors},
        exporters={status.name: status for status in exporters},
    )


def measure(host_tree: HostTree, before: OwnSnapshot, after: OwnSnapshot, elapsed_s: float = 2.0) -> Values:
    values = OwnCollector(host_tree.context()).compute(before, after, elapsed_s)
    catalogue = Catalogue(METRICS)
    assert [key for key in values if catalogue.resolve(key) is None] == []
    return values


def test_cpu_is_percent_of_one_core_over_the_interval(host_tree: HostTree) -> None:
    """30 ms in 2 s is 1.5 %."""
    values = measure(
        host_tree, snapshot(cpu_ms=100, records=10, wakeups=50), snapshot(cpu_ms=130, records=12, wakeups=58)
    )
    assert values == {
        "dynolog_cpu_pct": pytest.approx(1.5),
        "dynolog_rss_bytes": 20_000_000,
        "dynolog_threads": 5,
        "dynolog_open_fds": 33,
        "dynolog_wakeups": 8,
        "dynolog_records": 2,
    }


def test_the_ipc_and_lost_log_lines_are_counted(host_tree: HostTree) -> None:
    before = msgspec.structs.replace(
        snapshot(),
        ipc=IpcStatus(enabled=True, requests=100, dropped_replies=4, malformed=1, trainers=8),
        log_lines_lost=2,
    )
    after = msgspec.structs.replace(
        before,
        ipc=IpcStatus(enabled=True, requests=130, dropped_replies=9, malformed=2, trainers=7),
        log_lines_lost=12,
    )
    values = measure(host_tree, before, after)
    assert values["dynolog_trainers"] == 7
    assert values["dynolog_ipc_requests"] == 30
    assert values["dynolog_ipc_dropped_replies"] == 5
    assert values["dynolog_ipc_malformed"] == 1
    assert values["dynolog_log_lines_lost"] == 10


def test_without_an_ipc_there_are_no_values_of_it(host_tree: HostTree) -> None:
    assert not [key for key in measure(host_tree, snapshot(), snapshot()) if "ipc" in key or "trainers" in key]


def test_collectors_are_up_or_not_and_their_failures_and_stalls_add_up(host_tree: HostTree) -> None:
    before = [
        collector_status("cpu", CollectorState.OK, rounds=5, last_ms=0.4, failures=1),
        collector_status("disk", CollectorState.OK, rounds=5, last_ms=0.2, stalls=1),
    ]
    after = [
        collector_status("cpu", CollectorState.FAILING, rounds=7, last_ms=0.5, max_ms=7.0, failures=3),
        collector_status("disk", CollectorState.STALLED, rounds=5, last_ms=0.2, max_ms=3.0, stalls=2),
        collector_status("new", CollectorState.STARTING, failures=9),
        collector_status("psi", CollectorState.UNAVAILABLE, rounds=1, last_ms=0.1, max_ms=0.1, failures=1),
    ]
    values = measure(host_tree, snapshot(collectors=before), snapshot(collectors=after))
    assert {key: value for key, value in values.items() if "collector" in key} == {
        "dynolog_collector_up.cpu": 0,
        "dynolog_collector_ms.cpu": 0.5,
        "dynolog_collector_max_ms.cpu": 7.0,
        "dynolog_collector_max_ms.disk": 3.0,
        "dynolog_collector_max_ms.psi": 0.1,
        "dynolog_collector_up.disk": 0,
        "dynolog_collector_up.psi": 0,
        "dynolog_collector_ms.psi": 0.1,
        "dynolog_collector_failures": 2,
        "dynolog_collector_stalls": 1,
    }


def test_a_collector_that_works_is_up(host_tree: HostTree) -> None:
    values = measure(host_tree, snapshot(), snapshot(collectors=[collector_status("cpu", CollectorState.OK)]))
    assert values["dynolog_collector_up.cpu"] == 1


def test_exporters_have_deltas_once_they_were_seen(host_tree: HostTree) -> None:
    before = [ExporterStatus(name="log", destination="stderr", sent=10, dropped=1)]
    after = [
        ExporterStatus(name="log", destination="stderr", sent=14, dropped=3, queued=2),
        ExporterStatus(name="otlp", destination="http", sent=9, queued=7),
    ]
    values = measure(host_tree, snapshot(exporters=before), snapshot(exporters=after))
    assert {key: value for key, value in values.items() if "exporter" in key} == {
        "dynolog_exporter_queue.log": 2,
        "dynolog_exporter_queue_bytes.log": 0,
        "dynolog_exporter_sent.log": 4,
        "dynolog_exporter_dropped.log": 2,
        "dynolog_exporter_retries.log": 0,
        "dynolog_exporter_queue.otlp": 7,
        "dynolog_exporter_queue_bytes.otlp": 0,
    }


def test_a_network_exporter_tells_its_state_queue_spool_and_why_it_lost_what(host_tree: HostTree) -> None:
    def status(**fields: object) -> ExporterStatus:
        return ExporterStatus(name="otlp", destination="http", spool="on", **fields)  # type: ignore[arg-type]

    old = status(dropped=2, dropped_by={"refused": 2}, retries=3)
    new = status(
        dropped=9,
        dropped_by={"refused": 4, "spool_full": 5},
        retries=7,
        queued_bytes=123,
        spool_bytes=4567,
        state=ExporterState.RETRYING,
        last_success_wall_ns=1_000_000_000,
    )
    after = msgspec.structs.replace(snapshot(exporters=[new]), wall_ns=3_500_000_000)
    values = measure(host_tree, snapshot(exporters=[old]), after)
    assert {key: value for key, value in values.items() if key.endswith(".otlp")} == {
        "dynolog_exporter_queue.otlp": 0,
        "dynolog_exporter_queue_bytes.otlp": 123,
        "dynolog_exporter_spool_bytes.otlp": 4567,
        "dynolog_exporter_up.otlp": 0,
        "dynolog_exporter_last_success_age.otlp": 2.5,
        "dynolog_exporter_sent.otlp": 0,
        "dynolog_exporter_dropped.otlp": 7,
        "dynolog_exporter_retries.otlp": 4,
        "dynolog_exporter_dropped_refused.otlp": 2,
        "dynolog_exporter_dropped_spool_full.otlp": 5,
    }
    delivers = measure(host_tree, snapshot(), snapshot(exporters=[status(state=ExporterState.OK)]))
    assert delivers["dynolog_exporter_up.otlp"] == 1
    assert "dynolog_exporter_last_success_age.otlp" not in delivers


@pytest.mark.parametrize("reason", LOSS_REASONS)
def test_every_reason_for_a_loss_has_a_metric(host_tree: HostTree, reason: str) -> None:
    before = ExporterStatus(name="otlp", destination="http", dropped_by={})
    after = ExporterStatus(name="otlp", destination="http", dropped_by={reason: 3})
    values = measure(host_tree, snapshot(exporters=[before]), snapshot(exporters=[after]))
    assert values[f"dynolog_exporter_dropped_{reason}.otlp"] == 3


def test_what_proc_does_not_tell_is_missing(host_tree: HostTree) -> None:
    after = OwnSnapshot(process=OwnProcess(cpu_ns=0, wakeups=0), records=None, collectors={}, exporters={})
    assert measure(host_tree, after, after) == {"dynolog_cpu_pct": 0.0, "dynolog_wakeups": 0}


def test_a_reading_of_this_process_has_all_of_it(host_tree: HostTree) -> None:
    """The root of the host tree is not looked at: the daemon is in its own /proc."""
    collector = OwnCollector(host_tree.context())
    reading = collector.read()
    assert reading.process.rss_bytes is not None
    assert reading.process.rss_bytes > 1_000_000
    assert reading.process.threads is not None
