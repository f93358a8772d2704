"""What a receiver says when it took a request: everything, or not all of it (partial success). Either way it is not sent again."""

from typing import Any

import msgspec

from dynolog.exporters.delivery.http_transport import HttpAnswer
from dynolog.exporters.delivery.payload import Delivered, Refused, Verdict
from dynolog.exporters.otlp.messages import messages


class _Partial(msgspec.Struct, rename="camel"):
    # 64-bit numbers are texts in OTLP's JSON; some receivers write numbers.
    rejected_data_points: str | int = 0
    rejected_log_records: str | int = 0
    error_message: str = ""


class _JsonAnswer(msgspec.Struct, rename="camel"):
    partial_success: _Partial | None = None


def http_verdict(answer: HttpAnswer, signal: str) -> Verdict:
    """The meaning of a 2xx answer to a `metrics` or `logs` request.

    A page of HTML is no receiver's answer but a proxy's or a web server's: the records are not where they should be.
    """
    kind = answer.content_type.partition(";")[0].strip().lower()
    if kind == "text/html" or answer.body.lstrip()[:1] == b"<":
        return Refused(f"the answer ({answer.status}) is a web page, not a receiver's: is the address right?")
    if not answer.body:
        return Delivered()
    if kind == "application/json":
        return _from_json(answer.body)
    return protobuf_verdict(answer.body, signal)


def refusal(answer: HttpAnswer) -> str:
    """Why a request was refused, where the answer is the google.rpc.Status that the specification asks for; else ""."""
    if answer.content_type.partition(";")[0].strip().lower() != "application/x-protobuf":
        return ""
    found = messages()
    # The same fields as a Status has, a number and a text, and it is among the classes of the extra.
    status = found.metrics_service.ExportMetricsPartialSuccess()
    try:
        status.ParseFromString(answer.body)
    except found.DecodeError:
        return ""
    words: str = status.error_message
    return words


def protobuf_verdict(body: bytes, signal: str) -> Verdict:
    """The meaning of an Export...ServiceResponse."""
    found = messages()
    if signal == "logs":
        response: Any = found.logs_service.ExportLogsServiceResponse()
    else:
        response = found.metrics_service.ExportMetricsServiceResponse()
    try:
        response.ParseFromString(body)
    except found.DecodeError:
        return Delivered(message="the request was taken, but the answer to it cannot be read")
    partial = response.partial_success
    if signal == "logs":
        return _verdict(0, partial.rejected_log_records, partial.error_message)
    return _verdict(partial.rejected_data_points, 0, partial.error_message)


def _from_json(body: bytes) -> Verdict:
    try:
        partial = msgspec.json.decode(body, type=_JsonAnswer).partial_success or _Partial()
        return _verdict(int(partial.rejected_data_points), int(partial.rejected_log_records), partial.error_message)
    except ValueError:  # msgspec's errors are ValueErrors too
        return Delivered(message="the request was taken, but the answer to it cannot be read")


def _verdict(points: int, records: int, why: str) -> Verdict:
    reason = f": {why}" if why else ""
    if points > 0:
        # How many records they are from is not said; it is at least one.
        return Delivered(rejected=1, message=f"the receiver refused {points} data points{reason}")
    if records > 0:
        return Delivered(rejected=records, message=f"the receiver refused {records} log records{reason}")
    return Delivered(message=f"the receiver remarks{reason}" if why else "")
