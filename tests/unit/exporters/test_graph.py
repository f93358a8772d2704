"""ODS and Scuba: what arrives over https, what the token is never seen in, and values that are too old to be told from new ones."""

import json
import logging
import ssl
import time
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, quote

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.delivery.payload import Delivered, Payload, Refused, RetryLater, Verdict
from dynolog.exporters.graph import ods, scuba
from dynolog.exporters.graph.access_token import AccessToken
from dynolog.exporters.graph.form import form
from dynolog.exporters.graph.forms_transport import GraphTransport
from dynolog.exporters.graph.ods import OdsEncoder
from dynolog.exporters.graph.scuba import ScubaEncoder
from dynolog.model.errors import FlagError
from dynolog.model.record import Record
from fakes.exporter_context import exporter_context, record
from fakes.http_receiver import answer, http_receiver

SECRET = "EAAB/secret+token=="
GPU: dict[str, int | float | str] = {
    "gpu_power_draw": 300.0,
    "uptime": 86400,
    "gpu_name": "NVIDIA H200",
    "bad": float("inf"),
}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def test_ods_gets_one_form_a_record(server_tls: ssl.SSLContext, ca_file: str) -> None:
    with http_receiver(server_tls) as receiver:
        exporter = ods.make(
            exporter_context(
                ods_url=f"https://127.0.0.1:{receiver.port}/v2.2/ods_metrics",
                access_token=SECRET,
                certificate_path=ca_file,
                category_id="42",
                ods_entity_prefix="fair.",
            )
        )
        now_ns = time.time_ns()
        exporter.export([record(GPU, now_ns, device="3", job_id="7"), record({"cpu_i": 71.3424}, now_ns + 1)])
        first, second = receiver.wait_for(2)
        exporter.close()
    assert first.path == "/v2.2/ods_metrics"
    assert first.headers["content-type"] == "application/x-www-form-urlencoded"
    assert first.body.decode() == (
        f"access_token={quote(SECRET, safe='')}&datapoints="
        + quote(
            '[{"entity":"fair.gpu17.gpu.3","key":"dynolog.gpu_power_draw","value":"300.000"},'
            '{"entity":"fair.gpu17.gpu.3","key":"dynolog.uptime","value":86400}]',
            safe="",
        )
        + "&category_id=42"
    )
    assert json.loads(parse_qs(second.body.decode())["datapoints"][0]) == [
        {"entity": "fair.gpu17", "key": "dynolog.cpu_i", "value": "71.342"}
    ]


def test_scuba_gets_one_log_a_record_with_its_values_by_type(server_tls: ssl.SSLContext, ca_file: str) -> None:
    with http_receiver(server_tls) as receiver:
        exporter = scuba.make(
            exporter_context(
                scuba_url=f"https://127.0.0.1:{receiver.port}/v2.2/scribe_logs",
                access_token=SECRET,
                certificate_path=ca_file,
            )
        )
        exporter.export([record(GPU, device="3", job_id="90210_2")])
        (request,) = receiver.wait_for(1)
        exporter.close()
    fields = parse_qsl(request.body.decode(), strict_parsing=True)
    assert [name for name, _ in fields] == ["access_token", "logs"]
    assert fields[0][1] == SECRET
    (log,) = json.loads(fields[1][1])
    message = json.loads(log.pop("message"))
    assert log == {"category": "perfpipe_dynolog_hpc", "line_escape": False}
    assert message == {
        "int": {"uptime": 86400, "device": 3, "time": 1658446954},
        "normal": {"gpu_name": "NVIDIA H200", "job_id": "90210_2", "host_name": "gpu17"},
        "double": {"gpu_power_draw": 300.0},
    }


def test_a_server_of_another_authority_is_not_told_the_token(server_tls: ssl.SSLContext) -> None:
    with http_receiver(server_tls) as receiver:
        exporter = scuba.make(exporter_context(scuba_url=f"https://127.0.0.1:{receiver.port}/", access_token=SECRET))
        verdict = exporter._transport.send(Payload(body=b"logs=", records=1))
        exporter.close()
    assert isinstance(verdict, RetryLater)
    assert "certificate" in verdict.reason.lower()
    assert receiver.requests == []


def test_the_token_is_in_no_error_log_line_or_spool(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A server that repeats the token in its refusal, as it is and as it travelled."""
    text = f"bad token {SECRET}: {quote(SECRET, safe='')}".encode()
    with http_receiver() as receiver, caplog.at_level(logging.DEBUG):
        receiver.answers = [answer(503, text, Content_Type="text/plain")]
        receiver.then = answer(400, text, Content_Type="text/plain")
        exporter = scuba.make(
            exporter_context(
                scuba_url=f"http://127.0.0.1:{receiver.port}/", access_token=SECRET, spool_dir=str(tmp_path / "spool")
            )
        )
        exporter.export([record(GPU)])
        receiver.wait_for(2)
        exporter.close()
    progress = exporter.progress()
    assert progress.dropped_by
    said = f"{progress} {exporter.destination} {caplog.text}"
    assert "bad token ***" in said
    for spelling in (SECRET, quote(SECRET, safe="")):
        assert spelling not in said
        for path in (tmp_path / "spool").rglob("*"):
            assert path.is_dir() or spelling.encode() not in path.read_bytes()


def test_plain_http_and_a_missing_token_are_said(caplog: pytest.LogCaptureFixture) -> None:
    ods.make(exporter_context(ods_url="http://127.0.0.1:9/", access_token=SECRET)).close()
    scuba.make(exporter_context(scuba_url="https://127.0.0.1:9/")).close()
    assert "readable for everybody on the way" in caplog.text
    assert "there is no access token" in caplog.text
    assert SECRET not in caplog.text


def test_flags_that_cannot_be_used_end_the_start() -> None:
    with pytest.raises(FlagError, match="not a URL"):
        ods.make(exporter_context(ods_url="graph.example"))
    with pytest.raises(FlagError, match="cannot be read"):
        ods.make(exporter_context(certificate_path="/nowhere.pem"))


class KeepingTransport:
    """Takes everything."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self.secrets = secrets
        self.bodies: list[bytes] = []
        self.closed = False

    def send(self, payload: Payload) -> Verdict:
        self.bodies.append(payload.body)
        return Delivered()

    def close(self) -> None:
        self.closed = True


def test_values_that_are_too_old_are_not_given_out_as_new() -> None:
    """ODS stamps what it gets with the time it gets it."""
    made: list[KeepingTransport] = []

    def make_http(secrets: tuple[str, ...]) -> KeepingTransport:
        made.append(KeepingTransport(secrets))
        return made[-1]

    transport = GraphTransport(make_http, AccessToken("t", ""), oldest_s=120, wall_ns=lambda: 1_000_000_000_000)
    fresh, old = (Payload(body=b"", records=1, kind=str((1000 - age_s) * 10**9)) for age_s in (120, 121))
    assert transport.send(fresh) == Delivered()
    assert isinstance(transport.send(old), Refused)
    assert len(made[0].bodies) == 1


def test_a_new_token_in_the_file_is_used_and_hidden(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("old/")
    made: list[KeepingTransport] = []

    def make_http(secrets: tuple[str, ...]) -> KeepingTransport:
        made.append(KeepingTransport(secrets))
        return made[-1]

    transport = GraphTransport(make_http, AccessToken("", str(path)))
    transport.send(Payload(body=b"a=1", records=1))
    path.write_text("newer/")
    transport.send(Payload(body=b"a=2", records=1))
    assert [http.bodies for http in made] == [[b"access_token=old%2F&a=1"], [b"access_token=newer%2F&a=2"]]
    assert [http.secrets for http in made] == [("old/", "old%2F"), ("newer/", "newer%2F")]
    assert made[0].closed


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_a_form_is_read_back(fields: dict[str, str]) -> None:
    fields = {f"n{number}": text for number, text in enumerate(fields.values())}
    assert dict(parse_qsl(form(fields).decode(), keep_blank_values=True)) == fields


@given(st.dictionaries(st.text(max_size=9), st.integers() | st.floats() | st.text(max_size=9), max_size=6))
def test_every_number_reaches_both_and_no_token_that_is_no_json(values: dict[str, int | float | str]) -> None:
    made = Record(wall_ns=10**9, source="kernel", values=values)
    finite = {key: value for key, value in values.items() if not isinstance(value, float) or value - value == 0}
    numbers = {key for key, value in finite.items() if not isinstance(value, str)}
    payloads = OdsEncoder("h", "", "").encode([made])
    assert len(payloads) == bool(numbers)
    for payload in payloads:
        points = json.loads(parse_qs(payload.body.decode())["datapoints"][0])
        assert {point["key"] for point in points} == {f"dynolog.{key}" for key in numbers}
    (payload,) = ScubaEncoder("h", "c").encode([made])
    (log,) = json.loads(parse_qs(payload.body.decode())["logs"][0])
    message = json.loads(log["message"], parse_constant=pytest.fail)
    assert set().union(*message.values()) == {*finite, "time", "host_name"}
