"""Network exporters: what is retried, what is not, what is counted, and how they end."""

import gzip
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dynolog.exporters.delivery.backoff import Backoff
from dynolog.exporters.delivery.payload import Delivered, Refused, RetryLater
from dynolog.exporters.delivery.sending import NetworkExporter
from dynolog.model.flag import FlagValue
from dynolog.model.record import Record
from dynolog.model.status import ExporterState
from fakes.scripted_transport import NumberEncoder, ScriptedTransport, delivery_context, numbered

AWAY = RetryLater("HTTP 503")


def exporter(transport: ScriptedTransport, first_s: float = 0.001, **flags: FlagValue) -> NetworkExporter:
    return NetworkExporter(
        "test",
        "http://there",
        NumberEncoder(),
        transport,
        delivery_context(**flags),
        backoff=Backoff(first_s=first_s, longest_s=max(first_s, 0.01)),
    )


def end(made: NetworkExporter, seconds: float = 10.0) -> None:
    made.end_by(time.monotonic_ns() + int(seconds * 1e9))
    made.close()


def until(condition: Callable[[], bool]) -> None:
    """Counters move just after an attempt; there is no event for them."""
    give_up = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.002)


def test_records_are_sent_in_order_and_counted() -> None:
    transport = ScriptedTransport()
    made = exporter(transport)
    assert made.progress().state is ExporterState.IDLE
    made.export(numbered(1, 2))
    made.export(numbered(3))
    end(made)
    assert [payload.body for payload in transport.attempts] == [b"1", b"2", b"3"]
    progress = made.progress()
    assert (progress.sent, progress.queued, progress.dropped_by, progress.state) == (3, 0, {}, ExporterState.OK)
    assert progress.last_success_wall_ns > 0
    assert transport.closes >= 1


def test_what_may_be_retried_is_with_the_same_bytes_and_nothing_overtakes_it() -> None:
    transport = ScriptedTransport(AWAY, OSError(104, "Connection reset by peer"), AWAY)
    made = exporter(transport)
    made.export(numbered(1, 2))
    end(made)
    assert [payload.body for payload in transport.attempts] == [b"1"] * 4 + [b"2"]
    assert made.progress().retries == 3
    assert made.progress().sent == 2


def test_delays_begin_anew_after_a_success() -> None:
    resets: list[int] = []

    class Counting(Backoff):
        def reset(self) -> None:
            resets.append(len(transport.attempts))
            super().reset()

    transport = ScriptedTransport(AWAY, AWAY, Delivered(), AWAY)
    made = NetworkExporter(
        "test", "there", NumberEncoder(), transport, delivery_context(), backoff=Counting(0.001, 0.01)
    )
    made.export(numbered(1, 2))
    transport.wait_for(5)
    until(lambda: made.progress().sent == 2)
    end(made)
    assert resets == [3, 5]


def test_while_it_retries_state_reason_and_queue_are_told() -> None:
    transport = ScriptedTransport()
    transport.then = OSError(111, "Connection refused")
    made = exporter(transport, first_s=30)
    made.export(numbered(1, 2, 3))
    until(lambda: made.progress().retries == 1)
    progress = made.progress()
    assert progress.state is ExporterState.RETRYING
    assert progress.error == "Connection refused"
    assert progress.queued == 3
    assert progress.queued_bytes == 3
    assert 10 < progress.next_try_s <= 30
    transport.then = Delivered()
    end(made)
    assert made.progress().sent == 3


def test_what_is_refused_is_dropped_and_the_next_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    transport = ScriptedTransport(Refused("HTTP 400: no"))
    made = exporter(transport)
    made.export(numbered(1))
    transport.wait_for(1)
    until(lambda: made.progress().state is ExporterState.FAILING)
    assert made.progress().error == "HTTP 400: no"
    made.export(numbered(2))
    end(made)
    progress = made.progress()
    assert (progress.sent, progress.dropped_by, progress.error) == (1, {"refused": 1}, "")
    assert "1 because the destination refused them: HTTP 400: no" in caplog.text


def test_a_partial_success_is_counted_and_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    transport = ScriptedTransport(Delivered(1, "bad unit"))
    made = exporter(transport)
    made.export(numbered(1))
    end(made)
    assert len(transport.attempts) == 1
    progress = made.progress()
    assert (progress.sent, progress.dropped_by, progress.error) == (0, {"rejected": 1}, "bad unit")
    assert "bad unit" in caplog.text


def test_an_error_in_a_transport_costs_one_payload_and_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    transport = ScriptedTransport(ValueError("Invalid header value b'Bearer swordfish'"))
    made = exporter(transport)
    made.export(numbered(1, 2))
    end(made)
    assert made.progress().dropped_by == {"refused": 1}
    assert made.progress().sent == 1
    assert "ValueError while sending" in caplog.text
    assert "swordfish" not in caplog.text


def test_export_never_waits_for_the_destination() -> None:
    transport = ScriptedTransport()
    transport.gate.clear()
    made = exporter(transport)
    for number in range(2000):
        made.export(numbered(number))
    assert made.progress().dropped_by["queue_full"] >= 998
    transport.gate.set()
    end(made)
    assert transport.attempts[-1].body == b"1999"


def test_the_end_interrupts_a_back_off_and_sends_what_waits() -> None:
    transport = ScriptedTransport(RetryLater("HTTP 429", 600.0))
    made = exporter(transport)
    made.export(numbered(1))
    until(lambda: made.progress().retries == 1)
    started = time.monotonic()
    end(made)
    assert time.monotonic() - started < 30
    assert made.progress().sent == 1


def test_the_end_is_in_time_and_counts_what_could_not_be_sent() -> None:
    transport = ScriptedTransport()
    transport.then = AWAY
    made = exporter(transport)
    made.export(numbered(1, 2, 3))
    started = time.monotonic()
    end(made, 0.2)
    assert time.monotonic() - started < 30
    assert made.progress().dropped_by == {"shutdown": 3}


def test_the_end_does_not_wait_for_an_attempt_that_hangs() -> None:
    transport = ScriptedTransport()
    transport.gate.clear()
    made = exporter(transport)
    made.export(numbered(1, 2))
    transport.wait_for(1)
    end(made, 0.1)
    assert made.progress().dropped_by == {"shutdown": 2}
    transport.gate.set()


def test_with_a_spool_the_end_does_not_wait_for_a_destination_that_is_away(tmp_path: Path) -> None:
    transport = ScriptedTransport()
    transport.then = AWAY
    made = exporter(transport, spool_dir=str(tmp_path))
    made.export(numbered(1, 2, 3))
    until(lambda: made.progress().retries > 0)
    started = time.monotonic()
    end(made, 30)
    assert time.monotonic() - started < 30
    assert made.progress().dropped_by == {}

    later = ScriptedTransport()
    again = exporter(later, spool_dir=str(tmp_path))
    again.export(numbered(4))
    end(again)
    assert [payload.body for payload in later.attempts] == [b"1", b"2", b"3", b"4"]


def test_spooling_shows_in_the_progress(tmp_path: Path) -> None:
    transport = ScriptedTransport()
    transport.then = AWAY
    made = exporter(transport, spool_dir=str(tmp_path))
    made.export(numbered(*range(100)))
    until(lambda: made.progress().retries > 0)
    progress = made.progress()
    assert progress.spool == "on"
    assert progress.spool_bytes > 3000
    assert (tmp_path / "test").is_dir()
    transport.then = Delivered()
    end(made)
    assert made.progress().sent == 100


def test_an_answer_that_drips_for_ever_is_cut_when_the_next_records_come() -> None:
    transport = ScriptedTransport()
    transport.timeout_s = 0.0
    transport.gate.clear()
    made = exporter(transport)
    made.export(numbered(1))
    transport.wait_for(1)

    def is_cut() -> bool:
        made.export(numbered(2))
        return transport.closes > 0

    until(is_cut)
    transport.gate.set()
    end(made)


def test_payloads_are_compressed_once_when_asked() -> None:
    transport = ScriptedTransport(AWAY)
    made = NetworkExporter(
        "test", "there", NumberEncoder(), transport, delivery_context(), gzip=True, backoff=Backoff(0.001, 0.01)
    )
    made.export(numbered(7))
    end(made)
    first, second = transport.attempts
    assert first == second
    assert first.gzipped
    assert gzip.decompress(first.body) == b"7"


def test_an_encoder_that_fails_costs_its_records_only() -> None:
    class Broken(NumberEncoder):
        def encode(self, records):  # type: ignore[no-untyped-def]
            if records[0].wall_ns == 1:
                raise ValueError("cannot")
            return super().encode(records)

    transport = ScriptedTransport()
    made = NetworkExporter("test", "there", Broken(), transport, delivery_context())
    with pytest.raises(ValueError, match="cannot"):
        made.export(numbered(1))
    made.export(numbered(2))
    end(made)
    assert transport.wait_for(1) == [b"2"]


def test_no_thread_before_the_first_records() -> None:
    before = threading.active_count()
    made = exporter(ScriptedTransport())
    assert threading.active_count() == before
    end(made)
    assert made.progress().sent == 0


def test_retries_and_recovery_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    transport = ScriptedTransport(*[AWAY] * 20)
    made = exporter(transport)
    with caplog.at_level("INFO"):
        made.export([Record(wall_ns=1, source="kernel", values={})])
        end(made)
    assert caplog.text.count("tried again in") == 1
    assert caplog.text.count("delivers again after") == 1


def test_delays_double_up_to_the_longest_and_keep_to_what_is_asked() -> None:
    low, high = Backoff(draw=lambda: 0.0), Backoff(draw=lambda: 0.999)
    assert [low.delay_s() for _ in range(9)] == [0.25, 0.5, 1, 2, 4, 8, 15, 15, 15]
    assert [round(high.delay_s(), 1) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert low.delay_s(20.0) == 20.0
    assert 20 < high.delay_s(20.0) < 22.1
    assert low.delay_s(0.0) == 0.5
    assert low.delay_s(1e9) == 900
    low.reset()
    assert low.delay_s() == 0.25
