"""What comes back from destinations, and the spool on a disk that may have lost its mind."""

from dynolog.exporters.delivery import retry_after, spool_segment
from dynolog.exporters.delivery.http_transport import HttpAnswer
from dynolog.exporters.otlp import answers as otlp_answers
from fuzz.target import Target, plain, text_of

_MARKER = b"01234567"


def _segment(data: bytes) -> None:
    segment = data.replace(b"MARK", _MARKER)
    for place in spool_segment.scan(segment, _MARKER).places:
        spool_segment.decode_entry(segment[place.offset : place.offset + place.size], _MARKER)


def _json_answer(data: bytes) -> None:
    otlp_answers.http_verdict(HttpAnswer(status=200, content_type="application/json", body=data), "metrics")


def _protobuf_answer(data: bytes) -> None:
    otlp_answers.protobuf_verdict(data, "metrics")
    otlp_answers.protobuf_verdict(data, "logs")


TARGETS: tuple[Target, ...] = (
    plain("spool_segment", _segment),
    plain("otlp_json_answer", _json_answer),
    plain("otlp_protobuf_answer", _protobuf_answer),
    plain("retry_after", lambda data: retry_after.retry_after_s(text_of(data), None, 1.7e9)),
)
