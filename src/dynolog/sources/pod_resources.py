"""Asks the kubelet which pod has which device: one gRPC call on a unix socket, with a deadline and a limit.

gRPC is HTTP/2 with a 5-byte head before each message (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). `h2` speaks
HTTP/2 in 1.6 MB; grpcio would take 10 MB and threads of its own for one call every 10 s.
"""

import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.pod_resources_messages import ContainerDevices, parse_list

if TYPE_CHECKING:
    from h2.connection import H2Connection
    from h2.events import Event

DEADLINE_S = 5.0
MOST_BYTES = 16 << 20
_METHOD = "/v1.PodResourcesLister/List"
_HEAD_BYTES = 5
_EMPTY_MESSAGE = bytes(_HEAD_BYTES)
_CHUNK_BYTES = 1 << 16
_OK = "0"
_UNIMPLEMENTED = "12"
_SOURCE = "pod-resources"


def list_pod_resources(path: str, deadline_s: float = DEADLINE_S) -> tuple[ContainerDevices, ...]:
    """Every container's devices. Raises SourceUnavailable, within about `deadline_s`, with what is wrong and what to do."""
    try:
        import h2.connection  # noqa: PLC0415, F401 - only with --enable_pod_resources_attribution
    except ImportError as error:
        raise SourceUnavailable(_SOURCE, "the h2 package is missing", "pip install 'dynolog[pods]'") from error
    call = _Call(time.monotonic() + deadline_s)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            message = call.run(connection, path)
        return parse_list(message)
    except TimeoutError as error:
        raise SourceUnavailable(
            _SOURCE, f"{path} did not answer within {deadline_s:g} s", "is the kubelet well?"
        ) from error
    except OSError as error:
        raise SourceUnavailable(_SOURCE, f"{path}: {error.strerror or error}", _remedy(error)) from error
    except ValueError as error:
        raise SourceUnavailable(_SOURCE, f"the answer of {path} is not understood: {error}") from error


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "run the daemon as root"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return (
            "name the kubelet's socket with --pod_resources_socket, and mount its directory into the daemon's container"
        )
    return ""


class _Call:
    """One call: what has come so far, until the stream ends."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._body = bytearray()
        self._headers: dict[str, str] = {}
        self._ended = False

    def run(self, connection: socket.socket, path: str) -> bytes:
        """The message of the answer. Raises OSError (TimeoutError), ValueError, SourceUnavailable."""
        from h2.config import H2Configuration  # noqa: PLC0415 - only with --enable_pod_resources_attribution
        from h2.connection import H2Connection  # noqa: PLC0415
        from h2.exceptions import H2Error  # noqa: PLC0415

        http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        connection.settimeout(self._left_s())
        connection.connect(path)
        http.initiate_connection()
        stream = http.get_next_available_stream_id()
        http.send_headers(stream, _request_headers(self._left_s()))
        http.send_data(stream, _EMPTY_MESSAGE, end_stream=True)
        try:
            while not self._ended:
                connection.settimeout(self._left_s())
                connection.sendall(http.data_to_send())
                data = connection.recv(_CHUNK_BYTES)
                if not data:
                    raise ConnectionResetError(0, "the connection was closed in the middle of the answer")
                for event in http.receive_data(data):
                    self._take(event, http)
        except H2Error as error:
            raise ValueError(f"not HTTP/2: {error}") from error
        return self._message()

    def _left_s(self) -> float:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def _take(self, event: "Event", http: "H2Connection") -> None:
        from h2 import events  # noqa: PLC0415 - only with --enable_pod_resources_attribution

        match event:
            case events.ResponseReceived() | events.TrailersReceived():
                self._headers |= {str(name): str(value) for name, value in event.headers or ()}
            case events.DataReceived():
                self._body += event.data or b""
                if len(self._body) > MOST_BYTES:
                    raise ValueError(f"it is longer than {MOST_BYTES >> 20} MiB")
                if event.flow_controlled_length and event.stream_id:
                    http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.StreamEnded():
                self._ended = True
            case events.StreamReset() | events.ConnectionTerminated():
                raise ConnectionResetError(0, f"the call was refused (HTTP/2 error {event.error_code})")

    def _message(self) -> bytes:
        status = self._headers.get("grpc-status", "")
        if status != _OK:
            words = (
                unquote(self._headers.get("grpc-message", ""))[:200] or f"HTTP status {self._headers.get(':status')}"
            )
            remedy = (
                "this kubelet has no pod-resources v1: use Kubernetes 1.20 or later" if status == _UNIMPLEMENTED else ""
            )
            raise SourceUnavailable(
                _SOURCE, f"the kubelet refused (gRPC status {status or 'missing'}): {words}", remedy
            )
        length = int.from_bytes(self._body[1:_HEAD_BYTES], "big")
        if len(self._body) != _HEAD_BYTES + length or self._body[0]:
            raise ValueError("not one uncompressed message")
        return bytes(self._body[_HEAD_BYTES:])


def _request_headers(left_s: float) -> list[tuple[str, str]]:
    return [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", _METHOD),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "dynolog"),
        ("grpc-timeout", f"{max(int(left_s * 1000), 1)}m"),
    ]
