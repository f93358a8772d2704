"""HTTP against a real server: every answer, and everything that comes instead of one."""

import datetime
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from dynolog.exporters.delivery.http_transport import HttpAnswer, HttpTransport, TlsFiles
from dynolog.exporters.delivery.payload import Delivered, Payload, Refused, RetryLater, Verdict
from dynolog.model.errors import FlagError
from fakes.http_receiver import HttpReceiver, answer, http_receiver

PAYLOAD = Payload(body=b"payload", records=1, content_type="application/x-protobuf")


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


def transport(receiver: HttpReceiver, **options: object) -> HttpTransport:
    options.setdefault("timeout_s", 5.0)
    return HttpTransport(f"http://127.0.0.1:{receiver.port}/v1/metrics", **options)  # type: ignore[arg-type]


def test_a_payload_is_posted_with_its_type_and_the_given_headers(receiver: HttpReceiver) -> None:
    sender = transport(receiver, headers={"x-team": "abc"})
    assert sender.send(PAYLOAD) == Delivered()
    sender.close()
    (request,) = receiver.requests
    assert (request.path, request.body) == ("/v1/metrics", b"payload")
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers["x-team"] == "abc"
    assert "content-encoding" not in request.headers


def test_a_kind_that_starts_with_a_slash_is_added_to_the_path(receiver: HttpReceiver) -> None:
    sender = HttpTransport(f"http://127.0.0.1:{receiver.port}/v2.2/?a=b", timeout_s=5)
    sender.send(Payload(body=b"", records=1, kind="/ods_metrics"))
    sender.close()
    assert receiver.requests[0].path == "/v2.2/ods_metrics?a=b"


def test_one_connection_serves_many_requests(receiver: HttpReceiver) -> None:
    sender = transport(receiver)
    for _ in range(5):
        assert sender.send(PAYLOAD) == Delivered()
    sender.close()
    assert (len(receiver.requests), receiver.connections) == (5, 1)


def test_a_connection_that_the_destination_closed_meanwhile_is_made_anew(receiver: HttpReceiver) -> None:
    def close_after(handler: BaseHTTPRequestHandler) -> None:
        answer(200)(handler)
        handler.close_connection = True

    receiver.then = close_after
    sender = transport(receiver)
    verdicts = []
    for _ in range(3):
        verdicts.append(sender.send(PAYLOAD))
        time.sleep(0.02)
    sender.close()
    assert verdicts == [Delivered()] * 3


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_overloaded_destination_is_asked_again(receiver: HttpReceiver, status: int) -> None:
    receiver.then = answer(status)
    sender = transport(receiver)
    verdict = sender.send(PAYLOAD)
    sender.close()
    assert isinstance(verdict, RetryLater)
    assert verdict.after_s is None
    assert verdict.reason.startswith(f"HTTP {status}")


@pytest.mark.parametrize("status", [304, 400, 401, 403, 404, 408, 413, 422, 500, 501, 505])
def test_any_other_answer_is_final(receiver: HttpReceiver, status: int) -> None:
    receiver.then = answer(status)
    sender = transport(receiver)
    verdict = sender.send(PAYLOAD)
    sender.close()
    assert isinstance(verdict, Refused)
    assert verdict.reason.startswith(f"HTTP {status}")


def in_seconds(seconds: int) -> str:
    return format_datetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("value", "least", "most"), [("7", 7, 7), (" 0 ", 0, 0), ("in 100 s", 60, 101), ("100 s ago", 0, 0)]
)
def test_retry_after_is_told_in_seconds_or_as_a_date(
    receiver: HttpReceiver, value: str, least: float, most: float
) -> None:
    # A date is made when the test runs: the whole run takes longer than a hundred seconds.
    dates = {"in 100 s": in_seconds(100), "100 s ago": in_seconds(-100)}
    receiver.then = answer(429, Retry_After=dates.get(value, value))
    sender = transport(receiver)
    verdict = sender.send(PAYLOAD)
    sender.close()
    assert isinstance(verdict, RetryLater)
    assert verdict.after_s is not None
    assert least <= verdict.after_s <= most


@pytest.mark.parametrize("value", ["soon", "-5", "1e9", "Wed, 99 Foo 2026 00:00:00 GMT", ""])
def test_a_retry_after_that_says_nothing_is_ignored(receiver: HttpReceiver, value: str) -> None:
    receiver.then = answer(503, Retry_After=value)
    sender = transport(receiver)
    verdict = sender.send(PAYLOAD)
    sender.close()
    assert isinstance(verdict, RetryLater)
    assert verdict.after_s is None


def test_a_redirect_is_not_followed_with_the_headers(receiver: HttpReceiver) -> None:
    with http_receiver() as elsewhere:
        receiver.then = answer(307, Location=f"http://127.0.0.1:{elsewhere.port}/")
        sender = transport(receiver, headers={"authorization": "Bearer swordfish"})
        verdict = sender.send(PAYLOAD)
        sender.close()
        assert isinstance(verdict, Refused)
        assert "redirects are not followed" in verdict.reason
        assert elsewhere.requests == []


def test_a_taken_request_is_judged_by_its_answer(receiver: HttpReceiver) -> None:
    seen: list[HttpAnswer] = []

    def judge(got: HttpAnswer) -> Verdict:
        seen.append(got)
        return Delivered(3, "three are bad")

    receiver.then = answer(200, b"<html>", Content_Type="text/html")
    sender = transport(receiver, on_success=judge)
    assert sender.send(PAYLOAD) == Delivered(3, "three are bad")
    sender.close()
    assert seen == [HttpAnswer(200, "text/html", b"<html>")]


def test_secrets_never_stand_in_a_reason(receiver: HttpReceiver) -> None:
    echoed = b"bad token: Bearer swordfish of user:hunter2; tok_123456 \x00\n" + b"x" * 5000
    receiver.then = answer(401, echoed, Content_Type="text/plain")
    sender = HttpTransport(
        f"http://user:hunter2@127.0.0.1:{receiver.port}/x?key=1",
        headers={"x-auth": "Bearer swordfish"},
        secrets=("tok_123456",),
        timeout_s=5,
    )
    verdict = sender.send(PAYLOAD)
    sender.close()
    assert isinstance(verdict, Refused)
    assert not any(secret in verdict.reason for secret in ("swordfish", "hunter2", "tok_123456"))
    assert "bad token: ***" in verdict.reason
    assert len(verdict.reason) < 300
    assert verdict.reason.isprintable()
    assert sender.destination == f"http://127.0.0.1:{receiver.port}/x"
    assert receiver.requests[0].headers["authorization"] == "Basic dXNlcjpodW50ZXIy"


def test_what_is_echoed_is_hidden_wherever_it_stands_and_whatever_the_status(receiver: HttpReceiver) -> None:
    sender = transport(
        receiver, headers={"authorization": "Bearer swordfish"}, on_success=lambda got: Delivered(1, got.body.decode())
    )
    verdicts = []
    for status in (200, 400, 503):
        receiver.then = answer(status, b"x" * 196 + b"swordfish is no token\n", Content_Type="text/plain")
        verdicts.append(sender.send(PAYLOAD))
    sender.close()
    assert "swor" not in repr(verdicts)
    assert "\\n" not in repr(verdicts)
    assert [type(verdict) for verdict in verdicts] == [Delivered, Refused, RetryLater]


def test_nobody_listening_is_a_reason_to_try_again() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        sender = HttpTransport(f"http://127.0.0.1:{bound.getsockname()[1]}/", timeout_s=5)
        assert sender.send(PAYLOAD) == RetryLater("Connection refused")


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def close_without_answer(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def half_a_header(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Len")
    handler.close_connection = True


def no_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 mail.example.com ESMTP\r\n")
    handler.close_connection = True


@pytest.mark.parametrize("instead", [reset, close_without_answer, no_http])
def test_anything_but_an_answer_is_a_reason_to_try_again_and_the_next_request_works(
    receiver: HttpReceiver, instead: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    receiver.answers = [instead]
    sender = transport(receiver)
    verdict = sender.send(PAYLOAD)
    assert isinstance(verdict, RetryLater)
    assert verdict.reason
    assert sender.send(PAYLOAD) == Delivered()
    sender.close()


def test_no_answer_in_time_is_a_reason_to_try_again(receiver: HttpReceiver) -> None:
    def silent(_handler: BaseHTTPRequestHandler) -> None:
        receiver.stopping.wait(20)

    receiver.answers = [silent]
    sender = transport(receiver, timeout_s=0.2)
    assert sender.send(PAYLOAD) == RetryLater("no answer within 0.2 s")
    sender.close()


def endless(receiver: HttpReceiver, pause_s: float) -> Callable[[BaseHTTPRequestHandler], None]:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not receiver.stopping.is_set():
            try:
                handler.wfile.write(b"x" * (1 if pause_s else 65536))
            except OSError:
                break
            receiver.stopping.wait(pause_s)
        handler.close_connection = True

    return write


@pytest.mark.parametrize("pause_s", [0.0, 0.02])
def test_a_body_that_never_ends_is_cut(receiver: HttpReceiver, pause_s: float) -> None:
    bodies: list[int] = []

    def judge(got: HttpAnswer) -> Verdict:
        bodies.append(len(got.body))
        return Delivered()

    receiver.answers = [endless(receiver, pause_s)]
    sender = transport(receiver, timeout_s=0.5, on_success=judge)
    started = time.monotonic()
    assert sender.send(PAYLOAD) == Delivered()
    assert time.monotonic() - started < 30
    assert 0 < bodies[0] <= 65536
    assert sender.send(PAYLOAD) == Delivered()
    sender.close()


def test_a_request_that_goes_on_is_cut_by_close_from_another_thread(receiver: HttpReceiver) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
        while not receiver.stopping.wait(0.01):
            try:
                handler.wfile.write(b"a")
            except OSError:
                break
        handler.close_connection = True

    receiver.answers = [drip]
    sender = transport(receiver, timeout_s=20)
    verdicts: list[Verdict] = []
    thread = threading.Thread(target=lambda: verdicts.append(sender.send(PAYLOAD)))
    thread.start()
    receiver.wait_for(1)
    sender.close()
    thread.join(10)
    assert isinstance(verdicts[0], RetryLater | Delivered)
    assert sender.send(PAYLOAD) == Delivered()
    sender.close()


class Tls:
    """An authority and the files made by it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = trustme.CA()
        self.ca = self._write("ca.pem", self.authority.cert_pem.bytes())

    def server(self, *, expired: bool = False, clients: bool = False, name: str = "127.0.0.1") -> ssl.SSLContext:
        end = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1) if expired else None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(name, not_after=end).configure_cert(context)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        return context

    def client(self) -> TlsFiles:
        issued = self.authority.issue_cert("client.example.com")
        return TlsFiles(
            ca_file=self.ca,
            certificate_file=self._write("client.pem", b"".join(blob.bytes() for blob in issued.cert_chain_pems)),
            key_file=self._write("client.key", issued.private_key_pem.bytes()),
        )

    def _write(self, name: str, data: bytes) -> str:
        path = self.directory / name
        path.write_bytes(data)
        return str(path)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return Tls(tmp_path)


def send_tls(context: ssl.SSLContext, files: TlsFiles) -> Verdict:
    with http_receiver(context) as receiver:
        sender = HttpTransport(f"https://127.0.0.1:{receiver.port}/", tls=files, timeout_s=5)
        verdict = sender.send(PAYLOAD)
        sender.close()
        return verdict


def test_tls_with_a_known_authority(tls: Tls) -> None:
    assert send_tls(tls.server(), TlsFiles(ca_file=tls.ca)) == Delivered()


def test_tls_with_a_client_certificate(tls: Tls) -> None:
    assert send_tls(tls.server(clients=True), tls.client()) == Delivered()


def test_a_missing_client_certificate_is_a_reason_to_try_again(tls: Tls) -> None:
    assert isinstance(send_tls(tls.server(clients=True), TlsFiles(ca_file=tls.ca)), RetryLater)


@pytest.mark.parametrize(
    ("expired", "name", "trusted", "word"),
    [
        (True, "127.0.0.1", True, "expired"),
        (False, "other.example.com", True, "IP address mismatch"),
        (False, "127.0.0.1", False, "unable to get local issuer certificate"),
    ],
)
def test_a_bad_certificate_is_said_and_waited_out(tls: Tls, expired: bool, name: str, trusted: bool, word: str) -> None:
    files = TlsFiles(ca_file=tls.ca) if trusted else TlsFiles()
    verdict = send_tls(tls.server(expired=expired, name=name), files)
    assert isinstance(verdict, RetryLater)
    assert word in verdict.reason


def test_files_that_go_bad_are_named(tls: Tls) -> None:
    files = tls.client()
    sender = HttpTransport("https://127.0.0.1:1/", tls=files, timeout_s=1)
    Path(files.key_file).write_text("nonsense")
    verdict = sender.send(PAYLOAD)
    assert isinstance(verdict, RetryLater)
    assert files.key_file in verdict.reason
    Path(files.ca_file).write_text("nonsense")
    verdict = sender.send(PAYLOAD)
    assert isinstance(verdict, RetryLater)
    assert files.ca_file in verdict.reason


def test_plain_http_to_a_tls_port_and_back_is_waited_out(tls: Tls, receiver: HttpReceiver) -> None:
    sender = HttpTransport(f"https://127.0.0.1:{receiver.port}/", tls=TlsFiles(ca_file=tls.ca), timeout_s=5)
    verdict = sender.send(PAYLOAD)
    sender.close()
    assert isinstance(verdict, RetryLater)
    assert verdict.reason.startswith("TLS: ")


@pytest.mark.parametrize("url", ["", "host:4318", "ftp://host/", "http://", "http://h:99999/", "http://h/a b", "//h/"])
def test_a_bad_url_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(FlagError, match="https://host:4318/path"):
        HttpTransport(url)


@pytest.mark.parametrize(
    "url",
    ["ftp://user:hunter2@host/?token=hunter2", "user:hunter2@host/x", "http://user:hunter2", "http://us:hunter2/x@h/"],
)
def test_a_refused_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(FlagError, match=r"^--x_url is not a URL") as caught:
        HttpTransport(url, said_by="--x_url")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"a": "b\r\nc: d"}, {"": "x"}, {"a": "é"}])
def test_a_bad_header_is_refused_at_the_start_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(FlagError) as caught:
        HttpTransport("http://h/", headers=headers)
    assert "c: d" not in str(caught.value)


def test_missing_files_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="cannot be read"):
        HttpTransport("https://h/", tls=TlsFiles(ca_file=str(tmp_path / "none.pem")))
