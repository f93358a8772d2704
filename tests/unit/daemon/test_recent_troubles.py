"""What went wrong in the last hour is kept for the status: each kind once, bounded, and nothing that callers can write."""

import logging
from pathlib import Path

from dynolog.daemon.glog import GlogHandler, GlogSink
from dynolog.daemon.recent_troubles import RecentTroubles
from dynolog.model.status import RecentTrouble

S = 1_000_000_000
WALL = 1_700_000_000 * S


class SetClock:
    """Both clocks, as the test sets them."""

    def __init__(self) -> None:
        self.now_ns = 100 * S
        self.offset_ns = WALL

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + self.offset_ns


class Logged:
    """Troubles on a clock, and loggers that only they hear."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.troubles = RecentTroubles(self.clock)

    def log(
        self, level: int, text: str, *words: object, name: str = "dynolog.pipeline.losses", **extra: object
    ) -> None:
        record = logging.getLogger(name).makeRecord(name, level, "x.py", 1, text, words, None, extra=extra)
        if record.levelno >= self.troubles.level:
            self.troubles.handle(record)

    def texts(self, *standing: str) -> list[str]:
        return [one.text for one in self.troubles.since_an_hour(standing)]


def test_the_newest_of_each_kind_is_kept_with_how_often_it_came_and_when() -> None:
    logged = Logged()
    for records in (3, 4):
        logged.log(logging.WARNING, "exporter %s lost records: %s", "otlp", f"{records} because the queue is full")
        logged.clock.now_ns += 10 * S
    logged.log(logging.ERROR, "exporter %s lost records: %s", "file", "1 because the disk is full")
    logged.log(logging.INFO, "dynolog is ready")
    assert logged.troubles.since_an_hour() == (
        RecentTrouble(wall_ns=WALL + 110 * S, text="exporter otlp lost records: 4 because the queue is full", times=2),
        RecentTrouble(wall_ns=WALL + 120 * S, text="exporter file lost records: 1 because the disk is full", times=1),
    )


def test_an_hour_after_the_last_time_it_is_forgotten() -> None:
    logged = Logged()
    logged.log(logging.WARNING, "a")
    logged.clock.now_ns += 1800 * S
    logged.log(logging.WARNING, "b")
    logged.clock.now_ns += 1800 * S
    assert logged.texts() == ["a", "b"]
    logged.clock.now_ns += 1
    assert logged.texts() == ["b"]


def test_a_step_of_the_wall_clock_changes_no_age() -> None:
    logged = Logged()
    logged.log(logging.WARNING, "the wall clock went %s by %.0f s", "back", 3600.0)
    logged.clock.offset_ns -= 3600 * S
    logged.clock.now_ns += 40 * S
    (trouble,) = logged.troubles.since_an_hour()
    assert logged.clock.wall_ns() - trouble.wall_ns == 40 * S


def test_what_stands_elsewhere_in_the_status_is_left_out_as_long_as_it_does() -> None:
    logged = Logged()
    logged.log(logging.WARNING, "perf is not available: %s", "forbidden: grant CAP_PERFMON")
    assert logged.texts("", "forbidden: grant CAP_PERFMON") == []
    assert logged.texts("") == ["perf is not available: forbidden: grant CAP_PERFMON"]


def test_sixteen_are_kept_and_long_texts_are_cut() -> None:
    logged = Logged()
    for number in range(100):
        logged.log(logging.WARNING, f"{number} " + "x" * 10_000)
    texts = logged.texts()
    assert [text.split()[0] for text in texts] == [str(number) for number in range(84, 100)]
    assert {len(text) for text in texts} == {400}


def test_what_callers_did_is_not_told_to_other_callers() -> None:
    logged = Logged()
    logged.log(logging.WARNING, "rpc: refused %s from %s", "trace", "uid 1000", name="dynolog.rpc.refusal_log")
    assert logged.texts() == []


def test_a_repeat_is_counted_and_not_written_to_the_log(tmp_path: Path) -> None:
    logged = Logged()
    log = tmp_path / "log"
    sink = GlogSink(str(log))
    handler = GlogHandler(sink)
    for is_repeat in (False, True, True):
        record = logging.getLogger("x").makeRecord("x", logging.WARNING, "x.py", 1, "stalled", (), None)
        if is_repeat:
            record.is_repeat = True
        for one in (logged.troubles, handler):
            one.handle(record)
    sink.close()
    assert log.read_text().count("] stalled\n") == 1
    assert [one.times for one in logged.troubles.since_an_hour()] == [3]
