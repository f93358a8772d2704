"""Where and how OTLP is sent: endpoints, and variables over flags."""

import contextlib
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.delivery.http_transport import TlsFiles
from dynolog.exporters.otlp.endpoint import Endpoint, grpc_endpoint, http_endpoint
from dynolog.exporters.otlp.making import destination
from dynolog.exporters.otlp.resource import logs_resource, metrics_resource
from dynolog.exporters.otlp.settings import OtlpSettings, Told, resolve
from dynolog.model.errors import FlagError

TOLD = Told(endpoint_flag="otlp_endpoint", headers_flag="otlp_headers")


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/metrics"),  # F12
        ("http://h:4318/", "http://h:4318/v1/metrics"),
        ("http://h:4318//", "http://h:4318/v1/metrics"),
        ("http://h:4318/v1/metrics", "http://h:4318/v1/metrics"),
        ("http://h:4318/v1/metrics/", "http://h:4318/v1/metrics"),
        ("http://h/mycollector/", "http://h/mycollector/v1/metrics"),
        ("https://h/otlp?key=1", "https://h/otlp/v1/metrics?key=1"),
        ("http://h/xv1/metrics", "http://h/xv1/metrics/v1/metrics"),
        ("h:4318", "http://h:4318/v1/metrics"),
        ("HTTPS://h", "https://h/v1/metrics"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/metrics"),
    ],
)
def test_the_path_is_added_once_to_a_base(base: str, url: str) -> None:
    assert http_endpoint(base, "/v1/metrics", verbatim=False, said_by="x") == Endpoint(url, url.startswith("https"))


@pytest.mark.parametrize(
    ("given_url", "url"),
    [
        ("http://h:4318", "http://h:4318/"),
        ("https://h/v1/metrics/", "https://h/v1/metrics/"),
        ("http://h/anything", "http://h/anything"),
    ],
)
def test_the_url_of_the_signal_itself_is_used_as_it_is(given_url: str, url: str) -> None:
    assert http_endpoint(given_url, "/v1/metrics", verbatim=True, said_by="x").address == url


@pytest.mark.parametrize("text", ["ftp://h", "http://", "http://h:99999", "http://h:x", "://", "grpc://h:1"])
def test_what_is_no_url_is_refused_with_the_name_of_the_flag(text: str) -> None:
    with pytest.raises(FlagError, match="--otlp_endpoint"):
        resolve(Told(endpoint=text, endpoint_flag="otlp_endpoint"), {}, "metrics")


@pytest.mark.parametrize(
    ("text", "insecure", "endpoint"),
    [
        ("http://h:4317", False, Endpoint("h:4317", False)),
        ("https://h:4317/", True, Endpoint("h:4317", True)),
        ("https://h", False, Endpoint("h:443", True)),
        ("http://[::1]:4317", False, Endpoint("[::1]:4317", False)),
        ("h:4317", False, Endpoint("h:4317", True)),
        ("h:4317", True, Endpoint("h:4317", False)),
        ("unix:/run/otel.sock", False, Endpoint("unix:/run/otel.sock", False)),
        ("dns:///h:4317", True, Endpoint("dns:///h:4317", False)),
    ],
)
def test_the_scheme_decides_on_tls_and_without_one_the_insecure_variable(
    text: str, insecure: bool, endpoint: Endpoint
) -> None:
    assert grpc_endpoint(text, insecure=insecure, said_by="x") == endpoint


@pytest.mark.parametrize("text", ["http://user:hunter2@h:4317", "user:hunter2@h:4317", "dns:///user:hunter2@h:4317"])
def test_a_user_is_refused_for_grpc_and_not_shown(text: str) -> None:
    """It would stand in the address that the status shows."""
    with pytest.raises(FlagError, match="has a user in it") as caught:
        grpc_endpoint(text, insecure=False, said_by="--otlp_endpoint")
    assert "hunter2" not in str(caught.value)


@given(st.text(max_size=40))
def test_no_text_breaks_the_endpoint_rules(text: str) -> None:
    with contextlib.suppress(FlagError):
        assert http_endpoint(text, "/v1/logs", verbatim=False, said_by="x").address.startswith(("http://", "https://"))
    with contextlib.suppress(FlagError):
        assert grpc_endpoint(text, insecure=False, said_by="x").address


def test_without_flags_and_variables_the_standard_ports_of_this_machine_are_used() -> None:
    assert resolve(TOLD, {}, "metrics").endpoint.address == "http://localhost:4318/v1/metrics"
    assert resolve(TOLD, {}, "logs").endpoint.address == "http://localhost:4318/v1/logs"
    grpc = resolve(Told(protocol="grpc"), {}, "metrics")
    assert grpc.endpoint == Endpoint("localhost:4317", False)


def test_a_variable_wins_over_the_flag_and_that_of_the_signal_over_both() -> None:
    told = Told(
        endpoint="http://flag",
        headers="a=flag",
        timeout_ms=1,
        compression="none",
        ca_file="flag.pem",
        certificate_file="flag.crt",
        key_file="flag.key",
    )
    general = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://general",
        "OTEL_EXPORTER_OTLP_HEADERS": "a=general",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2000",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "general.pem",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "general.crt",
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": "general.key",
    }
    assert resolve(told, general, "metrics") == OtlpSettings(
        protocol="http/protobuf",
        endpoint=Endpoint("http://general/v1/metrics", False),
        headers={"a": "general"},
        timeout_s=2.0,
        gzip=True,
        tls=TlsFiles("general.pem", "general.crt", "general.key"),
    )
    own = {name.replace("OTLP_", "OTLP_METRICS_"): value.replace("general", "own") for name, value in general.items()}
    own |= {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "3000", "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "none"}
    assert resolve(told, general | own, "metrics") == OtlpSettings(
        protocol="http/protobuf",
        endpoint=Endpoint("http://own/", False),
        headers={"a": "own"},
        timeout_s=3.0,
        gzip=False,
        tls=TlsFiles("own.pem", "own.crt", "own.key"),
    )
    assert resolve(told, general | own, "logs").endpoint.address == "http://general/v1/logs"
    empty = dict.fromkeys(general, " ")
    assert resolve(told, empty, "metrics").endpoint.address == "http://flag/v1/metrics"


def test_a_variable_that_makes_no_sense_is_said_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    environ = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "10s",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd",
        "OTEL_EXPORTER_OTLP_HEADERS": "key-without-value-S3CRET",
    }
    with caplog.at_level(logging.WARNING):
        how = resolve(Told(timeout_ms=7000), environ, "metrics")
    assert (how.protocol, how.timeout_s, how.gzip, how.headers) == ("http/protobuf", 7.0, False, {})
    assert [name for name in environ if name in caplog.text] == list(environ)
    assert "S3CRET" not in caplog.text


def test_an_address_for_people_has_no_password_and_no_query() -> None:
    how = resolve(Told(endpoint="https://user:pass@h:4318/x?api_key=1"), {}, "metrics")
    assert destination(how) == "https://h:4318/x/v1/metrics"


def test_the_variables_win_in_the_resource_of_metrics() -> None:
    assert metrics_resource("svc", "gpu17", {}) | {"service.version": ""} == {
        "service.name": "svc",
        "service.version": "",
        "host.name": "gpu17",
        "os.type": "linux",
    }
    told = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,k8s.cluster.name=b%2Cc,host.name=h"}
    found = metrics_resource("svc", "gpu17", told)
    assert (found["service.name"], found["k8s.cluster.name"], found["host.name"]) == ("a", "b,c", "h")
    assert metrics_resource("svc", "gpu17", told | {"OTEL_SERVICE_NAME": "z"})["service.name"] == "z"


def test_one_bad_entry_makes_the_whole_variable_of_attributes_unusable(caplog: pytest.LogCaptureFixture) -> None:
    found = metrics_resource("svc", "gpu17", {"OTEL_RESOURCE_ATTRIBUTES": "a=b,nonsense"})
    assert "a" not in found
    assert "OTEL_RESOURCE_ATTRIBUTES" in caplog.text


def test_the_resource_of_logs_grows_from_flag_and_file_with_lower_case_keys(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("env") / "resource.env"
    file.write_text("RACK=r17\nEMPTY=\nnothing\nZone=b=c\n")
    assert logs_resource("gpu17", "Zone=a, Cluster=x y,bad", str(file), {}) == {
        "service.name": "dynolog",
        "host_name": "gpu17",
        "zone": "b=c",
        "cluster": "x y",
        "rack": "r17",
    }


def test_a_resource_file_that_is_not_there_is_said_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert logs_resource("gpu17", "", "/nonexistent/file", {})["host_name"] == "gpu17"
    assert "/nonexistent/file" in caplog.text
