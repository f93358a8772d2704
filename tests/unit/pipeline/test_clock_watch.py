"""Gaps and jumps are explained; what a busy machine and a slewed clock do is not said."""

import pytest

from dynolog.pipeline.clock_watch import ClockWatch

S = 1_000_000_000
WALL = 1_700_000_000 * S


@pytest.fixture
def watch() -> ClockWatch:
    return ClockWatch(100 * S, WALL)


def test_a_late_awakening_is_a_time_in_which_the_daemon_did_not_run(
    watch: ClockWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.woke(101 * S, 161 * S, WALL + 61 * S)
    assert "did not run for 60 s" in caplog.text
    assert "wall clock" not in caplog.text


def test_two_threads_that_were_held_up_by_the_same_stop_say_it_once(
    watch: ClockWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.woke(101 * S, 161 * S, WALL + 61 * S)
    watch.woke(102 * S, 161 * S + 1, WALL + 61 * S + 1)
    assert caplog.text.count("did not run") == 1


@pytest.mark.parametrize(("step_s", "words"), [(3600, "went forward by 3600 s"), (-3600, "went back by 3600 s")])
def test_a_step_of_the_wall_clock_is_said_once(
    watch: ClockWatch, caplog: pytest.LogCaptureFixture, step_s: int, words: str
) -> None:
    for second in (1, 2, 3):
        watch.woke((100 + second) * S, (100 + second) * S, WALL + (second + step_s) * S)
    assert caplog.text.count(words) == 1
    assert len(caplog.records) == 1
    assert ("suspended" in caplog.text) == (step_s > 0)


def test_a_busy_machine_an_early_awakening_and_slewing_are_not_worth_a_word(
    watch: ClockWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.woke(101 * S, 103 * S, WALL + 3 * S)
    watch.woke(200 * S, 104 * S, WALL + 4 * S)
    # 500 ppm over 100 minutes.
    watch.woke(6104 * S, 6104 * S, WALL + 6007 * S)
    assert not caplog.records
