"""Reads remote-write requests with the protobuf runtime, from the protocol's definition and not from the code that writes them."""

from typing import Any, NamedTuple

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field


class WrittenSample(NamedTuple):
    labels: dict[str, str]
    value: float
    timestamp_ms: int


def _definition() -> descriptor_pb2.FileDescriptorProto:
    """In proto2, which is the same on the wire and writes a 0 that was read."""
    file = descriptor_pb2.FileDescriptorProto(name="remote_write_test.proto", package="test", syntax="proto2")
    one, many = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED
    for name, fields in (
        ("Label", (("name", 1, Field.TYPE_STRING, one, ""), ("value", 2, Field.TYPE_STRING, one, ""))),
        ("Sample", (("value", 1, Field.TYPE_DOUBLE, one, ""), ("timestamp", 2, Field.TYPE_INT64, one, ""))),
        (
            "TimeSeries",
            (("labels", 1, Field.TYPE_MESSAGE, many, "Label"), ("samples", 2, Field.TYPE_MESSAGE, many, "Sample")),
        ),
        ("WriteRequest", (("timeseries", 1, Field.TYPE_MESSAGE, many, "TimeSeries"),)),
    ):
        message = file.message_type.add(name=name)
        for field, number, kind, label, type_name in fields:
            made = message.field.add(name=field, number=number, type=kind, label=label)
            if type_name:
                made.type_name = f".test.{type_name}"
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_definition())
_REQUEST = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("test.WriteRequest"))


def read_request(body: bytes) -> list[WrittenSample]:
    """The samples of a request as a strict receiver reads it: nothing unknown, labels sorted and not empty, no series twice."""
    packed = bytes(cramjam.snappy.decompress_raw(body))
    request: Any = _REQUEST.FromString(packed)  # its fields are made at run time
    assert request.SerializeToString() == packed, "unknown fields or an unusual form"
    samples = []
    seen = set()
    for series in request.timeseries:
        names = [label.name for label in series.labels]
        assert names == sorted(set(names)), names
        assert all(label.value for label in series.labels)
        assert "__name__" in names
        identity = tuple((label.name, label.value) for label in series.labels)
        assert identity not in seen, identity
        seen.add(identity)
        (sample,) = series.samples
        samples.append(WrittenSample(dict(identity), sample.value, sample.timestamp))
    return samples
