"""The whole OTLP exporter against a strict receiver: what each answer of cases F and the specification does to the records."""

import datetime
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import msgspec
import pytest
import trustme
from google.rpc import status_pb2

from dynolog.exporters.delivery.sending import NetworkExporter
from dynolog.exporters.otlp.making import logs_exporter, metrics_exporter
from dynolog.exporters.otlp.messages import messages
from dynolog.model.errors import FlagError
from dynolog.model.flag import FlagValue
from dynolog.model.record import Record
from dynolog.model.status import ExporterState
from fakes.exporter_context import exporter_context
from fakes.http_receiver import Answer, HttpReceiver, answer
from fakes.otlp_catalogue import OWNERS, full_catalogue
from fakes.otlp_checks import number, plain
from fakes.otlp_receiver import OtlpReceiver, otlp_grpc, otlp_http, response, taken

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
Setting = tuple[OtlpReceiver, HttpReceiver]


@pytest.fixture
def setting() -> Iterator[Setting]:
    with otlp_http() as made:
        yield made


@contextmanager
def exporter(
    environ: Mapping[str, str] | None = None, logs: bool = False, **given: FlagValue
) -> Iterator[NetworkExporter]:
    context = msgspec.structs.replace(
        exporter_context(None, (), "gpu17", (), **given), catalogue=full_catalogue(), owners=OWNERS
    )
    made = (logs_exporter if logs else metrics_exporter)(context, environ or {})
    assert isinstance(made, NetworkExporter)
    try:
        yield made
    finally:
        made.end_by(0)
        made.close()


def record(second: int = 0) -> Record:
    return Record(
        wall_ns=T0 + second * SECOND,
        source="kernel",
        values={"rx_bytes.eth0": second, "cpu_u": 50.0},
        intervals_ns={"network": SECOND, "cpu": SECOND},
    )


def endpoint(server: HttpReceiver) -> str:
    return f"http://127.0.0.1:{server.port}"


def seconds_taken(receiver: OtlpReceiver) -> list[int]:
    """Of each point of rx_bytes that a receiver took, which record it is from."""
    return [
        int(number(point))
        for request in receiver.metrics
        for metric in request.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "rx_bytes"
        for point in metric.sum.data_points
    ]


def eventually(ask: Callable[[], object]) -> None:
    """Until the answer is true: counters of another thread have no event to wait for."""
    deadline_s = time.monotonic() + 10
    while not ask():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def in_a_second() -> str:
    return format_datetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1), usegmt=True)


@pytest.mark.parametrize(
    "given_answer",
    [
        lambda: answer(429),
        lambda: answer(429, Retry_After="1"),
        lambda: answer(429, Retry_After=in_a_second()),
        lambda: answer(429, Retry_After="soon"),
        lambda: answer(502),
        lambda: answer(503, Retry_After="0"),
        lambda: answer(504),
        lambda: reset,
    ],
)
def test_what_may_pass_is_sent_again_byte_by_byte_and_in_order(
    setting: Setting, given_answer: Callable[[], Answer]
) -> None:
    """F09."""
    receiver, server = setting
    server.answers = [given_answer()]
    with exporter(otlp_endpoint=endpoint(server)) as sender:
        sender.export([record(1)])
        sender.export([record(2)])
        receiver.wait_for(2)
        assert seconds_taken(receiver) == [1, 2]
        assert server.requests[0].raw == server.requests[1].raw
        assert sender.progress().retries == 1
        assert sender.progress().dropped_by == {}
    receiver.check()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 500, 501])
def test_what_will_not_pass_is_dropped_and_counted_and_the_next_is_sent(setting: Setting, status: int) -> None:
    """F09: 500 is not among what the specification has tried again."""
    receiver, server = setting
    server.answers = [answer(status, b"S3CRET", Content_Type="text/plain")]
    with exporter(otlp_endpoint=endpoint(server), otlp_headers="authorization=S3CRET") as sender:
        sender.export([record(1)])
        server.wait_for(1)
        sender.export([record(2)])
        receiver.wait_for(1)
        assert seconds_taken(receiver) == [2]
        assert len(server.requests) == 2
        assert sender.progress().dropped_by == {"refused": 1}
    receiver.check()


def test_why_a_request_was_refused_is_said_without_secrets(setting: Setting) -> None:
    """The specification's answer to bad data is a Status message."""
    server = setting[1]
    said = status_pb2.Status(code=3, message="S3CRET may not send\nthat").SerializeToString()
    server.answers = [answer(400, said, Content_Type="application/x-protobuf")]
    with exporter(otlp_endpoint=endpoint(server), otlp_headers="authorization=S3CRET") as sender:
        sender.export([record(1)])
        eventually(lambda: sender.progress().error)
        assert sender.progress().error == "HTTP 400 Bad Request: *** may not send that"


def test_a_web_page_instead_of_a_receivers_answer_is_counted_as_lost(setting: Setting) -> None:
    receiver, server = setting
    server.answers = [answer(200, b"<html>Sign in", Content_Type="text/html")]
    with exporter(otlp_endpoint=endpoint(server)) as sender:
        sender.export([record(1)])
        server.wait_for(1)
        sender.export([record(2)])
        receiver.wait_for(1)
        assert sender.progress().dropped_by == {"refused": 1}


def test_a_partial_success_is_not_sent_again_and_what_was_refused_is_said(setting: Setting) -> None:
    receiver, server = setting
    server.answers = [taken(response(rejected=1, message="too old"))]
    with exporter(otlp_endpoint=endpoint(server)) as sender:
        sender.export([record(1)])
        server.wait_for(1)
        sender.export([record(2)])
        receiver.wait_for(1)
        assert len(server.requests) == 2
        assert sender.progress().dropped_by == {"rejected": 1}
    assert seconds_taken(receiver) == [2]


def test_a_body_that_never_ends_holds_the_exporter_up_for_no_longer_than_its_timeout(setting: Setting) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n")
        while not server.stopping.wait(0.05):
            try:
                handler.wfile.write(b"x")
            except OSError:
                break
        handler.close_connection = True

    receiver, server = setting
    server.answers = [endless]
    with exporter(otlp_endpoint=endpoint(server), otlp_timeout_ms=300) as sender:
        sender.export([record(1)])
        sender.export([record(2)])
        receiver.wait_for(1, timeout_s=10)
        assert seconds_taken(receiver) == [2]  # the status had said that the first was taken


def test_headers_compression_and_resource_come_from_the_variables(setting: Setting) -> None:
    receiver, server = setting
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint(server) + "/",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20dXNlcjpwYXNz==,x-fields=a%2Cb",
        "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "gzip",
        "OTEL_SERVICE_NAME": "fleet",
    }
    with exporter(environ, otlp_endpoint="http://127.0.0.1:1") as sender:
        sender.export([record(1)])
        receiver.wait_for(1)
    receiver.check()
    headers = receiver.headers[0]
    assert (headers["authorization"], headers["x-fields"]) == ("Basic dXNlcjpwYXNz==", "a,b")
    assert headers["content-encoding"] == "gzip"
    resource = receiver.metrics[0].resource_metrics[0].resource
    found = {pair.key: plain(pair.value) for pair in resource.attributes}
    assert (found["service.name"], found["host.name"], found["os.type"]) == ("fleet", "gpu17", "linux")


@pytest.mark.parametrize(
    ("told", "is_delta"), [("delta", True), ("LowMemory", True), ("cumulative", False), ("x", True)]
)
def test_the_standard_variable_decides_on_temporality(setting: Setting, told: str, is_delta: bool) -> None:
    receiver, server = setting
    environ = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": told}
    with exporter(environ, otlp_endpoint=endpoint(server)) as sender:
        for second in (1, 2, 3):
            sender.export([record(second)])
        receiver.wait_for(3)
    receiver.check()
    assert seconds_taken(receiver) == ([1, 2, 3] if is_delta else [1, 3, 6])


def test_log_records_go_to_their_own_path(setting: Setting) -> None:
    receiver, server = setting
    with exporter(logs=True, otel_endpoint=endpoint(server), otel_resource_attrs="Zone=a") as sender:
        sender.export([record(1), record(2)])
        receiver.wait_for(1)
    receiver.check()
    (of_resource,) = receiver.logs[0].resource_logs
    assert {pair.key: plain(pair.value) for pair in of_resource.resource.attributes} == {
        "service.name": "dynolog",
        "host_name": "gpu17",
        "zone": "a",
    }
    assert [made.time_unix_nano for made in of_resource.scope_logs[0].log_records] == [T0 + SECOND, T0 + 2 * SECOND]


def test_grpc_is_chosen_by_flag() -> None:
    with (
        otlp_grpc() as (receiver, server),
        exporter(otlp_protocol="grpc", otlp_endpoint=f"http://localhost:{server.port}") as sender,
    ):
        sender.export([record(1), record(2)])
        receiver.wait_for(1)
        assert sender.destination == f"localhost:{server.port} (gRPC)"
    receiver.check()
    assert seconds_taken(receiver) == [1, 2]


class Certificates:
    """An authority, a server's context that demands a client's certificate, and the flags of a client that has one."""

    def __init__(self, directory: Path, expired: bool = False) -> None:
        authority = trustme.CA()
        past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost", not_after=past if expired else None).configure_cert(self.context)
        authority.configure_trust(self.context)
        self.context.verify_mode = ssl.CERT_REQUIRED
        client = authority.issue_cert("client@example.org")
        authority.cert_pem.write_to_path(directory / "ca.pem")
        client.private_key_pem.write_to_path(directory / "client.key")
        client.cert_chain_pems[0].write_to_path(directory / "client.pem")
        self.flags: dict[str, FlagValue] = {
            "otlp_ssl_ca_cert_path": str(directory / "ca.pem"),
            "otlp_ssl_client_cert_path": str(directory / "client.pem"),
            "otlp_ssl_client_key_path": str(directory / "client.key"),
        }


def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with otlp_http(certificates.context) as (receiver, server):
        with exporter(
            otlp_endpoint=f"https://localhost:{server.port}", environ=None, logs=False, **certificates.flags
        ) as sender:
            sender.export([record(1)])
            receiver.wait_for(1)
        receiver.check()


def test_a_server_whose_certificate_expired_gets_nothing_and_the_records_wait(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path, expired=True)
    with (
        otlp_http(certificates.context) as (receiver, server),
        exporter(
            otlp_endpoint=f"https://localhost:{server.port}", environ=None, logs=False, **certificates.flags
        ) as sender,
    ):
        sender.export([record(1)])
        eventually(lambda: sender.progress().retries)
        progress = sender.progress()
        assert (progress.state, progress.queued, progress.dropped_by) == (ExporterState.RETRYING, 1, {})
        assert "expired" in progress.error
        assert receiver.metrics == []


def test_an_endpoint_that_cannot_be_used_is_said_at_start() -> None:
    with pytest.raises(FlagError, match="--otlp_endpoint"), exporter(otlp_endpoint="ftp://h"):
        pass
    environ = {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "ftp://h"}
    with pytest.raises(FlagError, match="OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"), exporter(environ, logs=True):
        pass


def test_a_missing_extra_is_named_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    messages.cache_clear()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "opentelemetry.proto.common.v1", None)
        with pytest.raises(FlagError, match=r"dynolog\[otlp\]"), exporter():
            pass
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "grpc", None)
        with pytest.raises(FlagError, match=r"dynolog\[otlp-grpc\]"), exporter(otlp_protocol="grpc"):
            pass
