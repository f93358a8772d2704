"""TPUs over a real HTTP server: records of the chips, and a plugin that misbehaves."""

import importlib.util
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from dynolog.collectors.spec import Context, DeviceReport
from dynolog.collectors.tpu import METRICS, SPEC, TpuCollector
from dynolog.model.errors import FlagError, SourceUnavailable
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.metric import Catalogue
from dynolog.sources.host_files import HostFiles
from dynolog.sources.metrics_page import MetricsPage
from fakes.collector_context import FakeNotices
from fakes.http_receiver import Answer, HttpReceiver, answer, http_receiver

TPU_LABELS = 'make="cloud-tpu",model="tpu7x"'
PAGE = (
    f'duty_cycle{{accelerator_id="123-0",{TPU_LABELS},namespace="ns",pod="p",container="c"}} 75\n'
    f'memory_total{{accelerator_id="123-0",{TPU_LABELS},namespace="ns",pod="p",container="c"}} 2.0e+11\n'
    f'memory_used{{accelerator_id="123-0",{TPU_LABELS},namespace="ns",pod="p",container="c"}} 5.0e+10\n'
    f'duty_cycle_node{{accelerator_id="123-1",{TPU_LABELS}}} 0\n'
).encode()
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@pytest.fixture
def plugin() -> Iterator[HttpReceiver]:
    with http_receiver() as receiver:
        receiver.then = answer(200, PAGE, Content_Type=TEXT)
        yield receiver


def collector(url: str, notices: FakeNotices | None = None) -> TpuCollector:
    given: dict[str, FlagValue] = {"tpu_device_plugin_url": url}
    settings = Settings(SPEC.flags, given)
    return TpuCollector(Context(host=HostFiles("/"), settings=settings, notices=notices or FakeNotices()))


def url_of(plugin: HttpReceiver) -> str:
    return f"http://127.0.0.1:{plugin.port}/metrics"


def report(tpu: TpuCollector) -> DeviceReport:
    snapshot = tpu.read()
    found = tpu.compute(snapshot, snapshot, 10)
    assert isinstance(found, DeviceReport)
    return found


def test_each_chip_gets_a_record_with_the_pod_on_it(plugin: HttpReceiver) -> None:
    found = report(collector(url_of(plugin)))
    assert dict(found) == {}
    first, second = found.devices
    names = {"accelerator_serial_number": "123", "accelerator_model": "tpu7x", "accelerator_vendor": "cloud-tpu"}
    assert (first.subject, second.subject) == ("0", "1")
    assert first.labels == {
        "device": "0", **names, "pod_namespace": "ns", "pod_name": "p", "container_name": "c"
    }  # fmt: skip
    assert first.values == {
        "accelerator_utilization": 75,
        "memory_utilization": 25,
        "accelerator_memory_total_bytes": 200_000_000_000,
        "accelerator_memory_used_bytes": 50_000_000_000,
        "tpu_error": 0,
    }
    assert second.labels == {"device": "1", **names}
    assert second.values == {"accelerator_utilization": 0, "tpu_error": 0}
    assert [request.path for request in plugin.requests] == ["/metrics"]
    catalogue = Catalogue(METRICS)
    assert all(catalogue.resolve(key) for device in found.devices for key in device.values)


def test_a_plugin_that_stops_shows_as_an_error_of_every_chip_and_comes_back(plugin: HttpReceiver) -> None:
    notices = FakeNotices()
    tpu = collector(url_of(plugin), notices)
    report(tpu)
    plugin.answers = [answer(500)]
    found = report(tpu)
    assert [device.values for device in found.devices] == [{"tpu_error": 1}, {"tpu_error": 1}]
    assert "pod_name" not in found.devices[0].labels
    assert "HTTP 500" in notices.said["tpu"]
    assert report(tpu).devices[0].values["accelerator_utilization"] == 75
    assert notices.said["tpu"] == ""


def test_a_chip_that_is_no_longer_named_has_an_error(plugin: HttpReceiver) -> None:
    tpu = collector(url_of(plugin))
    report(tpu)
    plugin.then = answer(200, PAGE.splitlines(keepends=True)[-1], Content_Type=TEXT)
    first, second = report(tpu).devices
    assert (first.values, second.values["tpu_error"]) == ({"tpu_error": 1}, 0)


def hang(handler: BaseHTTPRequestHandler) -> None:
    """Say nothing until the other side has gone."""
    handler.connection.settimeout(60)
    with suppress(OSError):
        handler.connection.recv(1)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A header that never ends, a byte at a time."""
    handler.connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    until = time.monotonic() + 60
    with suppress(OSError):
        while time.monotonic() < until:
            handler.connection.sendall(b"a")
            handler.connection.settimeout(0.02)
            with suppress(TimeoutError):
                if not handler.connection.recv(1):
                    return


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    with suppress(OSError):
        for _ in range(1024):
            handler.connection.sendall(b"# huge\n" * 9362)


def half(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9999\r\n\r\n" + PAGE)


def garbage(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.sendall(b"\x00\x01 no HTTP at all\r\n\r\n")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (hang, "no whole answer within"),
        (drip, "no whole answer within"),
        (endless, "longer than 8 MB"),
        (half, "breaks off"),
        (garbage, "is no HTTP"),
        (answer(500), "HTTP 500"),
        (answer(404, PAGE), "HTTP 404"),
        (answer(302, Location="http://127.0.0.1:1/"), "redirects are not followed"),
        (answer(200, b"<html>", Content_Type="text/html"), "no Prometheus page"),
        (answer(200, b"\x1f\x8b", Content_Type=TEXT, Content_Encoding="gzip"), "no Prometheus page"),
    ],
)
def test_a_plugin_that_misbehaves_is_said_and_costs_a_bounded_time(
    plugin: HttpReceiver, bad: Answer, reason: str
) -> None:
    def once(handler: BaseHTTPRequestHandler) -> None:
        bad(handler)
        handler.close_connection = True

    plugin.then = once
    page = MetricsPage(url_of(plugin), "--tpu_device_plugin_url", timeout_s=0.5 if bad in (hang, drip) else 20)
    with pytest.raises(SourceUnavailable, match=reason):
        page.read()


def test_a_page_without_a_tpu_is_said(plugin: HttpReceiver) -> None:
    plugin.then = answer(200, b"go_goroutines 34\n", Content_Type=TEXT)
    with pytest.raises(SourceUnavailable, match="no TPU is named there"):
        collector(url_of(plugin)).read()


def test_a_plugin_that_is_not_there_is_said_with_a_remedy() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/metrics"
        with pytest.raises(SourceUnavailable, match=r"Connection refused: .* whether --tpu_device_plugin_url is right"):
            collector(url).read()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:2112",
        "ftp://localhost/metrics",
        "http://",
        "http://h:port/",
        "http://a b/",
        "http://u:pw@h/metrics",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(FlagError, match="--tpu_device_plugin_url is not a URL that can be used") as caught:
        collector(url)
    assert "pw@" not in str(caught.value)


def test_a_missing_library_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(FlagError, match=r"needs urllib3: pip install 'dynolog\[tpu\]'"):
        collector("http://localhost:2112/metrics")


def test_it_is_off_until_it_is_asked_for(tmp_path: Path) -> None:
    assert not SPEC.on_by_default
    assert SPEC.enable_flag == "enable_tpu_monitor"
    assert {flag.name: flag.default for flag in SPEC.flags} == {
        "tpu_device_plugin_url": "http://localhost:2112/metrics",
        "tpu_reporting_interval_s": 10.0,
    }
