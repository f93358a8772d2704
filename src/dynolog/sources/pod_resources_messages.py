"""The messages of the kubelet's pod-resources service, as far as they are read (k8s.io/kubelet/pkg/apis/podresources/v1).

Three nested protobuf messages of texts: their wire format (https://protobuf.dev/programming-guides/encoding) takes less to read than
a protobuf runtime takes to import. Tests hold this against the official one.
"""

from collections.abc import Iterator

import msgspec

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


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
    for pod_message in _parts(memoryview(message), 1):
        pod, namespace = _text(pod_message, 1), _text(pod_message, 2)
        for container_message in _parts(pod_message, 3):
            container = _text(container_message, 1)
            found += [
                ContainerDevices(
                    namespace=namespace,
                    pod=pod,
                    container=container,
                    resource=_text(devices, 1),
                    device_ids=tuple(str(part, "utf-8") for part in _parts(devices, 2)),
                )
                for devices in _parts(container_message, 2)
            ]
    return tuple(found)


def _parts(message: memoryview, wanted: int) -> list[memoryview]:
    return [value for number, value in _fields(message) if number == wanted]


def _text(message: memoryview, wanted: int) -> str:
    values = _parts(message, wanted)
    return str(values[-1], "utf-8") if values else ""


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Number and content of each field of type bytes; fields of other types are passed over."""
    at = 0
    while at < len(message):
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
