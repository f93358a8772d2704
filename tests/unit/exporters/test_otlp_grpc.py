"""OTLP over gRPC against a real server: every status, TLS with client certificates, compression, deadline."""

import datetime
import gzip
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from dynolog.exporters.delivery.http_transport import TlsFiles
from dynolog.exporters.delivery.payload import Delivered, Payload, Refused, RetryLater, Verdict
from dynolog.exporters.otlp.endpoint import Endpoint
from dynolog.exporters.otlp.grpc_transport import GrpcTransport
from dynolog.exporters.otlp.metrics import MetricsEncoder
from dynolog.exporters.otlp.settings import OtlpSettings
from dynolog.model.errors import FlagError
from dynolog.model.record import Record
from fakes.otlp_catalogue import OWNERS, full_catalogue
from fakes.otlp_receiver import GrpcServer, OtlpReceiver, otlp_grpc, response, status

RECORD = Record(
    wall_ns=1_700_000_000 * 10**9,
    source="kernel",
    values={f"rx_bytes.eth{number}": number for number in range(50)},
    intervals_ns={"network": 10**9},
)
RESOURCE = {"service.name": "dynolog", "host.name": "gpu17"}
(PAYLOAD,) = MetricsEncoder(full_catalogue(), OWNERS, RESOURCE).encode([RECORD])


def settings(port: int, **more: Any) -> OtlpSettings:
    given: dict[str, Any] = {
        "protocol": "grpc",
        "endpoint": Endpoint(f"localhost:{port}", False),
        "headers": {},
        "timeout_s": 5.0,
        "gzip": False,
        "tls": TlsFiles(),
    }
    return OtlpSettings(**{**given, **more})


def send_once(how: OtlpSettings, payload: Payload = PAYLOAD, signal: str = "metrics") -> Verdict:
    transport = GrpcTransport(how, signal)
    try:
        return transport.send(payload)
    finally:
        transport.close()


@pytest.fixture
def plain() -> Iterator[tuple[OtlpReceiver, GrpcServer]]:
    with otlp_grpc() as made:
        yield made


def test_a_payload_arrives_with_the_headers_over_one_channel(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    receiver, server = plain
    transport = GrpcTransport(settings(server.port, headers={"authorization": "Basic MTIz"}), "metrics")
    assert [transport.send(PAYLOAD) for _ in range(2)] == [Delivered()] * 2
    transport.close()
    assert receiver.headers[0]["authorization"] == "Basic MTIz"
    assert receiver.headers[0]["user-agent"].startswith("dynolog-OTLP-Exporter-Python/")
    assert len(receiver.metrics[0].resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points) == 50
    # The same bytes again, which the strict receiver must notice.
    with pytest.raises(AssertionError, match="two points"):
        receiver.check()


def test_compression_is_grpcs_own(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    receiver, server = plain
    assert send_once(settings(server.port, gzip=True)) == Delivered()
    receiver.check()


def test_a_payload_that_was_compressed_for_http_is_sent_as_grpc_wants_it(
    plain: tuple[OtlpReceiver, GrpcServer],
) -> None:
    """It was left on disk by a run with another --otlp_protocol."""
    receiver, server = plain
    assert (
        send_once(settings(server.port), Payload(body=gzip.compress(PAYLOAD.body), records=1, gzipped=True))
        == Delivered()
    )
    receiver.check()


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    ],
)
def test_what_may_pass_is_tried_again(plain: tuple[OtlpReceiver, GrpcServer], code: grpc.StatusCode) -> None:
    server = plain[1]
    server.answers = [status(code, "busy")]
    assert send_once(settings(server.port)) == RetryLater(f"{code.name}: busy")
    assert server.calls == 1  # gRPC itself tried only once


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,  # without a RetryInfo
    ],
)
def test_what_will_not_pass_is_not_tried_again(plain: tuple[OtlpReceiver, GrpcServer], code: grpc.StatusCode) -> None:
    server = plain[1]
    server.answers = [status(code, "no")]
    assert send_once(settings(server.port)) == Refused(f"{code.name}: no")


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE])
@pytest.mark.parametrize(("retry_s", "after_s"), [(2.5, 2.5), (0.0, None)])
def test_a_retry_info_says_when(
    plain: tuple[OtlpReceiver, GrpcServer], code: grpc.StatusCode, retry_s: float, after_s: float | None
) -> None:
    server = plain[1]
    server.answers = [status(code, "full", retry_s)]
    assert send_once(settings(server.port)) == RetryLater(f"{code.name}: full", after_s)


def test_details_that_are_no_status_change_nothing(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    def garbage(context: Any) -> bytes:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff"),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        return b""

    plain[1].answers = [garbage]
    assert send_once(settings(plain[1].port)) == Refused("RESOURCE_EXHAUSTED: full")


def test_a_partial_success_is_delivered(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    plain[1].answers = [lambda _context: response(rejected=3, message="x")]
    assert send_once(settings(plain[1].port)) == Delivered(1, "the receiver refused 3 data points: x")


def test_log_records_go_to_the_service_of_logs(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    receiver, server = plain
    assert send_once(settings(server.port), Payload(body=b"", records=1), "logs") == Delivered()
    assert (len(receiver.logs), len(receiver.metrics)) == (1, 0)


def test_a_header_that_the_server_repeats_is_not_shown(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    plain[1].answers = [status(grpc.StatusCode.UNAUTHENTICATED, "who is Bearer S3CRET? S3CRET?" + "x" * 255 + "S3CRET")]
    found = send_once(settings(plain[1].port, headers={"authorization": "Bearer S3CRET"}))
    assert isinstance(found, Refused)
    assert found.reason.startswith("UNAUTHENTICATED: who is ***? ***?xxx")
    assert "S3" not in found.reason


def test_nobody_there_is_tried_again() -> None:
    found = send_once(settings(1))
    assert isinstance(found, RetryLater)
    assert found.reason.startswith("UNAVAILABLE")


def test_a_server_that_does_not_answer_costs_no_more_than_the_timeout(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    done = threading.Event()

    def silent(_context: Any) -> bytes:
        done.wait(20)
        return b""

    plain[1].answers = [silent]
    started_s = time.monotonic()
    found = send_once(settings(plain[1].port, timeout_s=0.3))
    done.set()
    assert isinstance(found, RetryLater)
    assert found.reason.startswith("DEADLINE_EXCEEDED")
    assert time.monotonic() - started_s < 15


def test_a_server_that_comes_back_gets_the_next_attempt_at_once() -> None:
    """A channel of gRPC itself waits longer and longer before it connects again, up to two minutes."""
    with otlp_grpc() as (_, server):
        port = server.port
    transport = GrpcTransport(settings(port), "metrics")
    for _ in range(3):
        assert isinstance(transport.send(PAYLOAD), RetryLater)
    with otlp_grpc(port=port):
        assert transport.send(PAYLOAD) == Delivered()
    transport.close()


def test_no_channel_stays_open_while_nothing_is_sent(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    """It would wake the daemon 12 times a second."""
    server = plain[1]
    transport = GrpcTransport(settings(server.port), "metrics")
    is_open = []
    for pause_s in (0, 60, 1, 1, 60):
        if transport._sent_s is not None:
            transport._sent_s -= pause_s
        assert transport.send(PAYLOAD) == Delivered()
        is_open.append(transport._channel is not None)
    transport.close()
    assert is_open == [False, False, True, True, False]
    peers = server.peers
    assert [one == before for before, one in itertools.pairwise(peers)] == [False, False, True, True]


def test_closing_ends_a_call_that_is_under_way(plain: tuple[OtlpReceiver, GrpcServer]) -> None:
    entered, done = threading.Event(), threading.Event()

    def silent(_context: Any) -> bytes:
        entered.set()
        done.wait(20)
        return b""

    plain[1].answers = [silent]
    transport = GrpcTransport(settings(plain[1].port, timeout_s=20.0), "metrics")
    verdicts: list[Verdict] = []
    thread = threading.Thread(target=lambda: verdicts.append(transport.send(PAYLOAD)))
    thread.start()
    assert entered.wait(10)
    transport.close()
    thread.join(5)
    done.set()
    assert isinstance(verdicts[0], RetryLater)
    transport.close()


class Certificates:
    """An authority, a server's and a client's certificate, in files."""

    def __init__(self, directory: Path, expired: bool = False) -> None:
        self.authority = trustme.CA()
        past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
        self.server = self.authority.issue_cert("localhost", not_after=past if expired else None)
        client = self.authority.issue_cert("client@example.org")
        self.tls = TlsFiles(str(directory / "ca.pem"), str(directory / "client.pem"), str(directory / "client.key"))
        self.authority.cert_pem.write_to_path(self.tls.ca_file)
        client.private_key_pem.write_to_path(self.tls.key_file)
        client.cert_chain_pems[0].write_to_path(self.tls.certificate_file)

    def server_credentials(self) -> grpc.ServerCredentials:
        pair = (self.server.private_key_pem.bytes(), self.server.cert_chain_pems[0].bytes())
        return grpc.ssl_server_credentials([pair], self.authority.cert_pem.bytes(), require_client_auth=True)


def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with otlp_grpc(certificates.server_credentials()) as (receiver, server):
        endpoint = Endpoint(f"localhost:{server.port}", True)
        assert send_once(settings(0, endpoint=endpoint, tls=certificates.tls)) == Delivered()
        receiver.check()
        anonymous = TlsFiles(certificates.tls.ca_file)
        assert isinstance(send_once(settings(0, endpoint=endpoint, tls=anonymous)), RetryLater)
        assert len(receiver.metrics) == 1


def test_an_expired_certificate_is_not_trusted_and_tried_again(tmp_path: Path) -> None:
    """It may be renewed; nothing is sent until then."""
    certificates = Certificates(tmp_path, expired=True)
    with otlp_grpc(certificates.server_credentials()) as (receiver, server):
        how = settings(0, endpoint=Endpoint(f"localhost:{server.port}", True), tls=certificates.tls)
        assert isinstance(send_once(how), RetryLater)
        assert receiver.metrics == []


@pytest.mark.parametrize(
    "files", [TlsFiles(certificate_file="x"), TlsFiles(key_file="x"), TlsFiles("/nonexistent.pem")]
)
def test_certificates_that_cannot_be_used_are_said_at_start(files: TlsFiles) -> None:
    with pytest.raises(FlagError):
        GrpcTransport(settings(0, endpoint=Endpoint("localhost:1", True), tls=files), "metrics")
