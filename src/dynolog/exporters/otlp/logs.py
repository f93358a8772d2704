"""Records as OpenTelemetry log records: one for each device and report, its values as attributes (extra `otlp`)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dynolog import __version__
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.otlp.mappings import Collected, Naming
from dynolog.exporters.otlp.messages import key_values, messages, text
from dynolog.model.record import Record

if TYPE_CHECKING:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

CONTENT_TYPE = "application/x-protobuf"
# 64 kernel records of 300 values are about 1 MB; receivers refuse 4 MB and more.
_MOST_VALUES = 16_384
_SECOND_NS = 1_000_000_000


class LogsEncoder:
    """One log record for each record: `sample_time` in seconds, then every value and label under its name, or under what
    `mappings` makes of it. Numbers that are not finite are left out."""

    def __init__(self, resource: Mapping[str, str], mappings: Mapping[str, Naming]) -> None:
        self._messages = messages()
        self._resource = self._messages.resource.Resource(attributes=key_values(resource.items()))
        self._mappings = mappings

    def encode(self, records: Sequence[Record]) -> Sequence[Payload]:
        """Payloads of about 1 MB at most, a record never split."""
        payloads: list[Payload] = []
        batch: list[LogRecord] = []
        values = 0
        for record in records:
            batch.append(self.log_record(record))
            values += len(record.values)
            if values >= _MOST_VALUES:
                payloads.append(self._payload(batch))
                batch, values = [], 0
        if batch:
            payloads.append(self._payload(batch))
        return payloads

    def log_record(self, record: Record) -> "LogRecord":
        """One record as a message."""
        attributes: dict[str, str | int | float] = {"sample_time": record.wall_ns // _SECOND_NS}
        columns: dict[str, dict[str, str]] = {}
        labels = {
            key: int(value) if key == "device" and value.isdecimal() else value for key, value in record.labels.items()
        }
        for key, value in {**record.values, **labels}.items():
            if not isinstance(value, str) and value - value != 0:  # NaN and infinities
                continue
            mapping = self._mappings.get(key)
            if mapping is None:
                attributes[key] = value
            elif isinstance(mapping, Collected):
                columns.setdefault(mapping.column, {})[mapping.subkey] = _as_text(value)
            else:
                attributes[mapping.output] = mapping.value(value)
        made: LogRecord = self._messages.logs.LogRecord(
            time_unix_nano=record.wall_ns,
            observed_time_unix_nano=record.wall_ns,
            attributes=key_values(item for item in attributes.items() if item[0] not in columns),
        )
        for column, entries in columns.items():
            attribute = made.attributes.add()
            attribute.key = text(column)
            attribute.value.kvlist_value.values.extend(key_values(entries.items()))
        return made

    def _payload(self, batch: "Sequence[LogRecord]") -> Payload:
        request = self._messages.logs_service.ExportLogsServiceRequest()
        of_resource = request.resource_logs.add()
        of_resource.resource.CopyFrom(self._resource)
        scope = of_resource.scope_logs.add()
        scope.scope.name = "dynolog"
        scope.scope.version = __version__
        scope.log_records.extend(batch)
        return Payload(body=request.SerializeToString(), records=len(batch), content_type=CONTENT_TYPE)


def _as_text(value: str | float) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
