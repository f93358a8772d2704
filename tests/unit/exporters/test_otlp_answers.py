"""What an answer to a request that was taken means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.delivery.http_transport import HttpAnswer
from dynolog.exporters.delivery.payload import Delivered, Refused, Verdict
from dynolog.exporters.otlp.answers import http_verdict
from fakes.otlp_receiver import PROTOBUF, response


def verdict(body: bytes, content_type: str = PROTOBUF, signal: str = "metrics") -> Verdict:
    return http_verdict(HttpAnswer(200, content_type, body), signal)


@pytest.mark.parametrize("content_type", [PROTOBUF, "", "application/json", "text/plain"])
def test_an_empty_answer_is_full_success(content_type: str) -> None:
    assert verdict(b"", content_type) == Delivered()


def test_a_partial_success_is_delivered_and_says_what_was_refused() -> None:
    """Never sent again: the rest would arrive twice."""
    found = verdict(response(rejected=12, message="too old"))
    assert found == Delivered(rejected=1, message="the receiver refused 12 data points: too old")


def test_of_log_records_the_receiver_says_how_many() -> None:
    found = verdict(response("logs", rejected=2), signal="logs")
    assert found == Delivered(rejected=2, message="the receiver refused 2 log records")


def test_a_remark_without_refusals_is_kept() -> None:
    assert verdict(response(message="use gzip")) == Delivered(message="the receiver remarks: use gzip")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", Delivered()),
        (b'{"partialSuccess":{}}', Delivered()),
        (b'{"partialSuccess":null}', Delivered()),
        # F13: 64-bit numbers are texts in JSON; some write numbers.
        (
            b'{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"x"}}',
            Delivered(1, "the receiver refused 3 data points: x"),
        ),
        (b'{"partialSuccess":{"rejectedLogRecords":3}}', Delivered(3, "the receiver refused 3 log records")),
    ],
)
def test_a_receiver_that_answers_in_json_is_understood(body: bytes, expected: Verdict) -> None:
    assert verdict(body, "application/json; charset=utf-8") == expected


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>Sign in</html>", "text/html; charset=utf-8"),
        (b"", "text/html"),
        (b"\n <!DOCTYPE html>", "text/plain"),
        (b"<html>", ""),
    ],
)
def test_a_web_page_is_no_receiver_that_took_anything(body: bytes, content_type: str) -> None:
    found = verdict(body, content_type)
    assert isinstance(found, Refused)
    assert "web page" in found.reason


@pytest.mark.parametrize(
    ("body", "content_type"), [(b"\xff\xff\xff", PROTOBUF), (b"[", "application/json"), (b"[1]", "application/json")]
)
def test_an_answer_that_cannot_be_read_does_not_undo_the_success(body: bytes, content_type: str) -> None:
    assert verdict(body, content_type) == Delivered(
        message="the request was taken, but the answer to it cannot be read"
    )


@given(
    st.binary(max_size=60),
    st.sampled_from([PROTOBUF, "application/json", "", "text/plain"]),
    st.sampled_from(["metrics", "logs"]),
)
def test_no_answer_breaks_the_reader(body: bytes, content_type: str, signal: str) -> None:
    assert isinstance(verdict(body, content_type, signal), Delivered | Refused)
