"""Retry-After: seconds, dates, whose clock counts, and everything that is neither."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.delivery.retry_after import retry_after_s

# 2026-11-30 12:00:00 UTC.
NOON = 1_796_040_000.0
AT_NOON = "Mon, 30 Nov 2026 12:00:00 GMT"
MINUTE_LATER = "Mon, 30 Nov 2026 12:01:00 GMT"


def test_a_date_is_as_far_away_as_the_clock_of_the_destination_says() -> None:
    """Ours is an hour ahead."""
    assert retry_after_s(MINUTE_LATER, AT_NOON, NOON + 3600) == 60


@pytest.mark.parametrize("date", [None, "", "nonsense"])
def test_without_a_clock_of_the_destination_ours_counts(date: str | None) -> None:
    assert retry_after_s(MINUTE_LATER, date, NOON) == 60


@pytest.mark.parametrize(
    "value", ["Monday, 30-Nov-26 12:01:00 GMT", "Mon, 30 Nov 2026 12:01:00 +0000", "Mon, 30 Nov 2026 13:01:00 +0100"]
)
def test_old_forms_and_zones_of_dates(value: str) -> None:
    assert retry_after_s(value, None, NOON) == 60


def test_a_time_that_has_passed_is_now() -> None:
    assert retry_after_s(AT_NOON, None, NOON + 5) == 0


@pytest.mark.parametrize(("value", "seconds"), [("120", 120), ("0", 0), (" 7\t", 7), ("9" * 400, 999_999_999_999)])
def test_seconds(value: str, seconds: float) -> None:
    assert retry_after_s(value, AT_NOON, NOON) == seconds


@given(st.text(), st.one_of(st.none(), st.text()))
def test_whatever_comes_gives_no_error_and_no_time_in_the_past(value: str, date: str | None) -> None:
    found = retry_after_s(value, date, NOON)
    assert found is None or found >= 0


@given(st.integers(0, 10**8))
def test_any_date_of_the_standard_form(distance_s: int) -> None:
    assert retry_after_s(formatdate(NOON + distance_s, usegmt=True), AT_NOON, 0.0) == distance_s
