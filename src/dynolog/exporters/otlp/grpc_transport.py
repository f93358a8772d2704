"""OTLP over gRPC (extra `otlp-grpc`): one unary call for each payload."""

import gzip
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynolog import __version__
from dynolog.exporters.delivery.foreign_words import ForeignWords
from dynolog.exporters.delivery.payload import Payload, Refused, RetryLater, Verdict
from dynolog.exporters.otlp.answers import protobuf_verdict
from dynolog.exporters.otlp.settings import OtlpSettings
from dynolog.model.errors import FlagError

if TYPE_CHECKING:
    import grpc

_METHODS = {
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
# The OTLP specification's table; RESOURCE_EXHAUSTED only with a RetryInfo in the status.
_RETRYABLE = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
_OPTIONS = (
    # Retries are ours: the channel's own would go unseen and unbounded.
    ("grpc.enable_retries", 0),
    # Else a new channel goes on with the connection of the one before, and with its wait after a failure.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 65_536),
    ("grpc.primary_user_agent", f"dynolog-OTLP-Exporter-Python/{__version__}"),
)
_Call = Callable[..., Any]
# A channel is kept open between calls that are no further apart.
_KEPT_S = 5.0


class GrpcTransport:
    """Calls Export of one signal's service. The messages are serialised already: the channel carries bytes.

    An open channel wakes the process 12 times a second, so it is kept only between calls that follow each other closely. After a failure it
    is made anew, with the files of certificates read again: its own waits between attempts would come on top of ours.
    """

    def __init__(self, settings: OtlpSettings, signal: str) -> None:
        """Raises FlagError when grpcio is not installed, and for certificates that cannot be used."""
        # Its library writes failed handshakes to stderr, in the middle of the log; the verdicts say them.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            # 9 MB that only a daemon with --otlp_protocol=grpc pays.
            import grpc  # noqa: PLC0415
        except ImportError as error:
            remedy = (
                "use --otlp_protocol=http/protobuf, which collectors take on port 4318, or pip install 'dynolog[otlp-grpc]' "
                "(the Debian and RPM packages leave it out)"
            )
            raise FlagError(f"OTLP over gRPC needs grpcio ({error}): {remedy}") from error
        tls = settings.tls
        if bool(tls.certificate_file) != bool(tls.key_file):
            raise FlagError("a client certificate needs its key, and a key its certificate: give both")
        try:
            for path in (tls.ca_file, tls.certificate_file, tls.key_file):
                _pem(path)
        except OSError as error:
            raise FlagError(f"{error.filename} cannot be read: {error.strerror}") from error
        self.timeout_s = settings.timeout_s
        self._grpc = grpc
        self._settings = settings
        self._words = ForeignWords(settings.headers)
        self._signal = signal
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._call: _Call | None = None
        self._sent_s: float | None = None

    def send(self, payload: Payload) -> Verdict:
        """One call, within the timeout."""
        verdict = self._send(payload)
        now_s = time.monotonic()
        is_close = self._sent_s is not None and now_s - self._sent_s < _KEPT_S
        self._sent_s = now_s
        if isinstance(verdict, RetryLater) or not is_close:
            self.close()
        return verdict

    def close(self) -> None:
        """Close the channel; a call under way ends as cancelled."""
        with self._lock:
            channel, self._channel, self._call = self._channel, None, None
        if channel is not None:
            channel.close()

    def _send(self, payload: Payload) -> Verdict:
        grpc = self._grpc
        # Payloads that an earlier run over HTTP left on disk may be compressed.
        body = gzip.decompress(payload.body) if payload.gzipped else payload.body
        try:
            answer = self._connected()(
                body,
                timeout=self.timeout_s,
                metadata=tuple(self._settings.headers.items()),
                compression=grpc.Compression.Gzip if self._settings.gzip else grpc.Compression.NoCompression,
            )
        except grpc.RpcError as error:
            return self._words.verdict(_failed(error))
        except ValueError:  # the channel was closed meanwhile, by close
            return RetryLater("the connection was closed")
        return self._words.verdict(protobuf_verdict(answer, self._signal))

    def _connected(self) -> _Call:
        with self._lock:
            if self._call is None:
                address = self._settings.endpoint.address
                if self._settings.endpoint.secure:
                    self._channel = self._grpc.secure_channel(address, self._credentials(), options=_OPTIONS)
                else:
                    self._channel = self._grpc.insecure_channel(address, options=_OPTIONS)
                self._call = self._channel.unary_unary(_METHODS[self._signal])
            return self._call

    def _credentials(self) -> "grpc.ChannelCredentials":
        tls = self._settings.tls
        return self._grpc.ssl_channel_credentials(
            root_certificates=_pem(tls.ca_file),
            private_key=_pem(tls.key_file),
            certificate_chain=_pem(tls.certificate_file),
        )


def _pem(path: str) -> bytes | None:
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()


def _failed(error: Any) -> Verdict:
    """What a status other than OK means for the payload."""
    name = error.code().name
    reason = f"{name}: {error.details()}" if error.details() else name
    told, after_s = _retry_info(error)
    if name in _RETRYABLE or (name == "RESOURCE_EXHAUSTED" and told):
        return RetryLater(reason, after_s)
    return Refused(reason)


def _retry_info(error: Any) -> tuple[bool, float | None]:
    """Whether the status has a RetryInfo, and the wait it asks for (None: at once, or not said)."""
    details = next((value for key, value in error.trailing_metadata() or () if key == "grpc-status-details-bin"), None)
    if details is None:
        return False, None
    # Only with a status that has details.
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from google.rpc import error_details_pb2, status_pb2  # noqa: PLC0415

    info = error_details_pb2.RetryInfo()
    try:
        for detail in status_pb2.Status.FromString(details).details:
            if detail.Unpack(info):
                wait_s = info.retry_delay.seconds + info.retry_delay.nanos / 1e9
                return True, wait_s if wait_s > 0 else None
    except DecodeError:  # bytes that are no status: the code alone decides
        pass
    return False, None
