"""The messages of the kubelet's pod-resources service, as far as they are read (k8s.io/kubelet/pkg/apis/podresources/v1).

Three nested protobuf messages of texts: their wire format (https://protobuf.dev/programming-guides/encoding) takes less to read than
a protobuf runtime takes to import. Tests hold this against the official one.
"""

from collections.abc import Iterator
from itertools import count

import msgspec

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
# Fields looked at in one answer: 500 pods with 60 devices each take some 100,000. Each of an answer of nothing else would cost an object.
MOST_FIELDS = 250_000


class ContainerDevices(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of one resource that a container of a pod has."""

    namespace: str
    pod: str
    container: str
    resource: str
    device_ids: tuple[str, ...]


def parse_list(message: bytes) -> tuple[ContainerDevices, ...]:
    """The devices in a ListPodResourcesResponse. Raises ValueError for what is no such message; unknown fields are passed over."""
    found: list[ContainerDevices] = []
    left = count(MOST_FIELDS, -1)
    for pod_message in _parts(memoryview(message), 1, left):
        pod, namespace = _text(pod_message, 1, left), _text(pod_message, 2, left)
        for container_message in _parts(pod_message, 3, left):
            container = _text(container_message, 1, left)
            found += [
                ContainerDevices(
                    namespace=namespace,
                    pod=pod,
                    container=container,
                    resource=_text(devices, 1, left),
                    device_ids=tuple(str(part, "utf-8") for part in _parts(devices, 2, left)),
                )
                for devices in _parts(container_message, 2, left)
            ]
    return tuple(found)


def _parts(message: memoryview, wanted: int, left: Iterator[int]) -> Iterator[memoryview]:
    return (value for number, value in _fields(message, left) if number == wanted)


def _text(message: memoryview, wanted: int, left: Iterator[int]) -> str:
    value = None
    for value in _parts(message, wanted, left):  # noqa: B007 - the last one counts
        pass
    return str(value, "utf-8") if value is not None else ""


def _fields(message: memoryview, left: Iterator[int]) -> Iterator[tuple[int, memoryview]]:
    """Number and content of each field of type bytes; fields of other types are passed over. `left` counts down for all of an answer."""
    at = 0
    while at < len(message):
        if next(left) <= 0:
            raise ValueError(f"it has more than {MOST_FIELDS:,} fields")
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == _BYTES:
            length, at = _varint(message, at)
            if length > len(message) - at:
                raise ValueError("a field is longer than its message")
            yield number, message[at : at + length]
            at += length
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of the unknown type {kind}")
    if at != len(message):
        raise ValueError("the message ends within a field")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if at >= len(message):
            raise ValueError("the message ends within a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at
    raise ValueError("a number is longer than 10 bytes")
