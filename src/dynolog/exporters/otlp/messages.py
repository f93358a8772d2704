"""The official OTLP message classes (extra `otlp`), imported when an exporter is made that needs them."""

from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

from dynolog.model.errors import FlagError

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


@cache
def messages() -> SimpleNamespace:
    """The modules `common`, `resource`, `metrics`, `logs`, `metrics_service` and `logs_service`, and `DecodeError`.

    Raises FlagError when the extra is missing.
    """
    try:
        # 5 MB that only a daemon with an OTLP exporter pays.
        from google.protobuf.message import DecodeError  # noqa: PLC0415
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2  # noqa: PLC0415
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2  # noqa: PLC0415
        from opentelemetry.proto.common.v1 import common_pb2  # noqa: PLC0415
        from opentelemetry.proto.logs.v1 import logs_pb2  # noqa: PLC0415
        from opentelemetry.proto.metrics.v1 import metrics_pb2  # noqa: PLC0415
        from opentelemetry.proto.resource.v1 import resource_pb2  # noqa: PLC0415
    except ImportError as error:
        raise FlagError(f"OpenTelemetry needs its messages ({error}): pip install 'dynolog[otlp]'") from error
    return SimpleNamespace(
        common=common_pb2,
        resource=resource_pb2,
        metrics=metrics_pb2,
        logs=logs_pb2,
        metrics_service=metrics_service_pb2,
        logs_service=logs_service_pb2,
        DecodeError=DecodeError,
    )


def key_values(attributes: "Iterable[tuple[str, str | int | float]]") -> "list[KeyValue]":
    """Attributes as messages."""
    common = messages().common
    return [common.KeyValue(key=text(key), value=any_value(value)) for key, value in attributes]


def any_value(value: str | float) -> "AnyValue":
    """A text, whole number (64 bit) or number as a message."""
    common = messages().common
    if isinstance(value, str):
        made: AnyValue = common.AnyValue(string_value=text(value))
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        made = common.AnyValue(int_value=value)
    else:
        made = common.AnyValue(double_value=value)
    return made


def text(value: str) -> str:
    """A text that protobuf takes: bytes of a name that are no UTF-8 become U+FFFD."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value
