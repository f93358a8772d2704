"""What comes from GPU libraries: replies of the child process, values of DCGM and NVML, the kubelet's list of devices."""

import ctypes
import struct
from types import SimpleNamespace
from typing import Any

import msgspec

from dynolog.sources.dcgm.blanks import blank_double, blank_int, blank_text
from dynolog.sources.gpu_wire import LENGTH_BYTES, Reply, length_of
from dynolog.sources.nvml.errors import DeviceLostError
from dynolog.sources.nvml.field_values import FieldReader
from dynolog.sources.pod_resources_messages import parse_list
from fuzz.target import Target, plain

_decode = msgspec.msgpack.Decoder(Reply).decode
_ANSWER_BYTES = struct.calcsize("=IIqqiI8s")


def _reply(data: bytes) -> None:
    length_of(data[:LENGTH_BYTES])
    _decode(data)


def _blanks(data: bytes) -> None:
    blank_text(data)
    if len(data) >= 8:
        blank_int(struct.unpack("<q", data[:8])[0])
        blank_double(struct.unpack("<d", data[:8])[0])


class _NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def _field_values(data: bytes) -> None:
    """NVML fills the answers in with these bytes, and says their first as its own result now and then."""

    def fill(_handle: Any, count: int, buffer: Any) -> int:
        answer = data[: count * _ANSWER_BYTES].ljust(count * _ANSWER_BYTES, b"\0")
        ctypes.memmove(buffer, answer, len(answer))
        return data[0] if data and data[0] < 30 else 0

    nvml = SimpleNamespace(nvmlLib=SimpleNamespace(nvmlDeviceGetFieldValues=fill), NVMLError=_NvmlError)
    reader = FieldReader(nvml, [(number, 0) for number in range(4)], frozenset((2,)))
    reader.read(0)
    reader.read(0)


TARGETS: tuple[Target, ...] = (
    plain("gpu_reply", _reply, msgspec.MsgspecError, RecursionError, UnicodeError, modules=["gpu_wire", "gpu_child"]),
    plain("dcgm_blanks", _blanks, modules=["dcgm.blanks"]),
    plain("nvml_fields", _field_values, _NvmlError, DeviceLostError, modules=["nvml.field_values", "nvml.errors"]),
    plain("pod_resources", parse_list, ValueError, modules=["pod_resources_messages"]),
)
