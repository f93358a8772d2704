"""Strict OTLP receivers, over HTTP and gRPC, made from the official messages; they answer what a test scripts."""

import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from fakes.http_receiver import Answer, HttpReceiver, Request, answer, http_receiver
from fakes.otlp_checks import StrictLogs, StrictMetrics

PROTOBUF = "application/x-protobuf"
GrpcAnswer = Callable[[grpc.ServicerContext], "bytes"]


class OtlpReceiver:
    """What has come, over either transport, and what was wrong with it. Only what is answered with success counts as taken."""

    def __init__(self) -> None:
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.sizes: list[int] = []
        self.faults: list[str] = []
        self._strict_metrics = StrictMetrics()
        self._strict_logs = StrictLogs()
        self._changed = threading.Condition()

    def take(self, signal: str, body: bytes, headers: dict[str, str]) -> None:
        with self._changed:
            self.headers.append(headers)
            self.sizes.append(len(body))
            if signal == "metrics":
                metrics = ExportMetricsServiceRequest.FromString(body)
                self._strict_metrics.look(metrics)
                self.metrics.append(metrics)
            else:
                logs = ExportLogsServiceRequest.FromString(body)
                self._strict_logs.look(logs)
                self.logs.append(logs)
            self._changed.notify_all()

    def wait_for(self, requests: int, timeout_s: float = 20.0) -> None:
        """Until this many requests were taken."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.metrics) + len(self.logs) >= requests, timeout_s)

    def check(self) -> None:
        """Fails with everything that was wrong."""
        faults = self.faults + self._strict_metrics.faults + self._strict_logs.faults
        assert not faults, "\n".join(faults)


def response(signal: str = "metrics", rejected: int = 0, message: str = "") -> bytes:
    """An Export...ServiceResponse; without arguments that of full success, which has no bytes."""
    if signal == "logs":
        logs = ExportLogsServiceResponse()
        if rejected or message:
            logs.partial_success.rejected_log_records = rejected
            logs.partial_success.error_message = message
        return logs.SerializeToString()
    metrics = ExportMetricsServiceResponse()
    if rejected or message:
        metrics.partial_success.rejected_data_points = rejected
        metrics.partial_success.error_message = message
    return metrics.SerializeToString()


def taken(body: bytes = b"", content_type: str = PROTOBUF) -> Answer:
    """200 with a response message."""
    return answer(200, body, Content_Type=content_type)


class _StrictHttp(HttpReceiver):
    def __init__(self, receiver: OtlpReceiver) -> None:
        super().__init__()
        self.receiver = receiver
        self.then = taken()

    def take(self, request: Request) -> Answer:
        signal = {"/v1/metrics": "metrics", "/v1/logs": "logs"}.get(request.path)
        if signal is None:
            self.receiver.faults.append(f"path {request.path}")
            return answer(404)
        if request.headers.get("content-type") != PROTOBUF:
            self.receiver.faults.append(f"content type {request.headers.get('content-type')}")
        if request.headers.get("content-encoding") not in (None, "gzip"):
            self.receiver.faults.append(f"content encoding {request.headers['content-encoding']}")
        scripted = bool(self.answers)
        reply = super().take(request)
        if not scripted:
            self.receiver.take(signal, request.body, request.headers)
        return reply


@contextmanager
def otlp_http(tls: ssl.SSLContext | None = None) -> Iterator[tuple[OtlpReceiver, HttpReceiver]]:
    """A receiver over HTTP, and the server: requests that get a scripted answer (`server.answers`) do not count as taken."""
    receiver = OtlpReceiver()
    with http_receiver(tls, make=lambda: _StrictHttp(receiver)) as server:
        yield receiver, server


class GrpcServer:
    """The gRPC side: `answers` are given in turn, then success."""

    def __init__(self, receiver: OtlpReceiver) -> None:
        self.receiver = receiver
        self.answers: list[GrpcAnswer] = []
        self.calls = 0
        self.peers: list[str] = []
        self.port = 0

    def export(self, signal: str) -> Callable[[bytes, Any], bytes]:
        def handle(body: bytes, context: Any) -> bytes:
            self.calls += 1
            self.peers.append(context.peer())
            if self.answers:
                return self.answers.pop(0)(context)
            headers = {key: str(value) for key, value in context.invocation_metadata()}
            self.receiver.take(signal, body, headers)
            return b""

        return handle


@contextmanager
def otlp_grpc(
    credentials: grpc.ServerCredentials | None = None, host: str = "localhost", port: int = 0
) -> Iterator[tuple[OtlpReceiver, GrpcServer]]:
    """A receiver over gRPC."""
    receiver = OtlpReceiver()
    scripted = GrpcServer(receiver)
    server = grpc.server(ThreadPoolExecutor(4))
    for signal, service in (("metrics", "metrics.v1.MetricsService"), ("logs", "logs.v1.LogsService")):
        handler: Any = grpc.unary_unary_rpc_method_handler(scripted.export(signal))
        name = f"opentelemetry.proto.collector.{service}"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Export": handler}),))
    if credentials is None:
        scripted.port = server.add_insecure_port(f"{host}:{port}")
    else:
        scripted.port = server.add_secure_port(f"{host}:{port}", credentials)
    server.start()
    try:
        yield receiver, scripted
    finally:
        server.stop(0).wait(10)


def status(code: grpc.StatusCode, details: str = "", retry_s: float | None = None) -> GrpcAnswer:
    """A status other than OK; `retry_s` adds a RetryInfo."""

    def reply(context: Any) -> NoReturn:
        if retry_s is not None:
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromNanoseconds(int(retry_s * 1e9))
            packed = AnyMessage()
            packed.Pack(info)
            message = status_pb2.Status(code=code.value[0], message=details, details=[packed])
            context.set_trailing_metadata((("grpc-status-details-bin", message.SerializeToString()),))
        context.abort(code, details)
        raise AssertionError  # abort has raised

    return reply
