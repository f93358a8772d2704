"""The HTTP side: what is answered, and that no client can take more than its share."""

import contextlib
import errno
import http.client
import socket
import sys
import threading
from collections.abc import Iterator, Sequence

import pytest

from dynolog.daemon import exit_codes
from dynolog.daemon.life_cycle import exit_code_of
from dynolog.exporters.prometheus.scrape_spec import (
    ADDRESS,
    NAMES,
    PORT,
    SPEC,
    USE_PROMETHEUS,
    PrometheusExporter,
    make,
)
from dynolog.exporters.prometheus.server import CannotServe, ScrapeServer, listen
from dynolog.exporters.spec import ExporterContext
from dynolog.model.errors import AddressInUse, DynologError, FlagError
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.record import Record
from fakes.prometheus import OWNERS, SECOND_NS, WALL_NS, catalogue

BIG = b"x" * 4_000_000


class Served:
    """A server on a free port of its own, whose answers a test sets."""

    def __init__(self, address: str = "127.0.0.1", **limits: float) -> None:
        self.asked: list[tuple[str, str, list[str]]] = []
        self.body = b"metrics\n"
        self.error: Exception | None = None
        listener = listen(address, 0)
        self.address = listener.getsockname()[:2]
        self.server = ScrapeServer(listener, self.answer, **limits)  # type: ignore[arg-type]  # numbers of both kinds

    def answer(self, accept: str, encoding: str, names: Sequence[str]) -> tuple[list[tuple[str, str]], bytes]:
        self.asked.append((accept, encoding, list(names)))
        if self.error is not None:
            raise self.error
        return [("Content-Type", "text/x")], self.body

    def get(self, target: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address[0], self.address[1], timeout=5)
        try:
            connection.request(method, target, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def raw(self, data: bytes = b"") -> socket.socket:
        """A connection on which `data` was sent."""
        connection = socket.create_connection(self.address, timeout=5)
        connection.sendall(data)
        return connection


@contextlib.contextmanager
def serving(address: str = "127.0.0.1", **limits: float) -> Iterator[Served]:
    served = Served(address, **limits)
    try:
        yield served
    finally:
        served.server.close()
        assert not [thread for thread in threading.enumerate() if thread.name == "prometheus"]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as one:
        yield one


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes; b"" when it cuts the connection off."""
    data = b""
    with connection, contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data


def test_metrics_are_at_metrics_and_the_root_says_so(served: Served) -> None:
    assert served.get() == (200, b"metrics\n")
    assert served.get("/?x=1")[0] == 200
    assert b"/metrics" in served.get("/")[1]
    assert served.get("/other")[0] == 404
    assert served.get("/metrics/x")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "get"])
def test_only_get(served: Served, method: str) -> None:
    assert served.get(method=method)[0] == 405
    assert served.asked == []


def test_headers_and_names_are_handed_on_whatever_their_case(served: Served) -> None:
    connection = served.raw(
        b"GET /metrics?name[]=a&name%5B%5D=b HTTP/1.1\r\naCCept: x\r\nACCEPT: y\r\nAccept-Encoding: gzip\r\n\r\n"
    )
    assert read_all(connection).startswith(b"HTTP/1.1 200 OK\r\n")
    assert served.asked == [("x, y", "gzip", ["a", "b"])]


@pytest.mark.parametrize(
    "garbage", [b"\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics\r\n\r\n", b"\x16\x03\x01\x00\r\n\r\n", b"\xff\xfe \xff \xff\r\n\r\n"]
)  # fmt: skip
def test_what_is_not_http_is_said_to_be_so(served: Served, garbage: bytes) -> None:
    assert read_all(served.raw(garbage)).startswith(b"HTTP/1.1 400 ")
    assert served.get()[0] == 200


def test_a_head_without_end_is_bounded(served: Served) -> None:
    answer = read_all(served.raw(b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 4000))
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""
    assert served.get()[0] == 200


def test_a_failing_scrape_is_answered_and_the_next_one_works(served: Served) -> None:
    served.error = ValueError("what went wrong")
    status, body = served.get()
    assert (status, b"what went wrong" in body) == (500, False)
    served.error = None
    assert served.get() == (200, b"metrics\n")


def test_silent_and_slow_clients_delay_nobody_and_are_cut_off() -> None:
    with serving(deadline_s=0.3) as served:
        served.body = BIG
        silent = served.raw()
        drip = served.raw(b"GET /met")
        deaf = served.raw(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert served.get() == (200, BIG)
        assert read_all(silent) == b""
        assert read_all(drip) == b""
        # What its buffers took comes; the rest was never sent.
        assert len(read_all(deaf)) < len(BIG)


def test_a_client_that_no_descriptor_is_left_for_is_said_once_and_without_a_traceback(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    loop, trouble = served.server._loop, OSError(errno.EMFILE, "Too many open files")
    for _ in range(3):
        loop.call_soon_threadsafe(loop.call_exception_handler, {"message": "accept", "exception": trouble})
    assert served.get()[0] == 200
    said, *repeats = caplog.records
    assert [getattr(record, "is_repeat", False) for record in (said, *repeats)] == [False, True, True]
    assert said.getMessage() == "a scrape could not be accepted: Too many open files: raise LimitNOFILE (ulimit -n)"
    assert said.exc_info is None


def test_of_too_many_clients_the_oldest_goes() -> None:
    with serving(most_clients=4, deadline_s=60) as served:
        crowd = [served.raw() for _ in range(12)]
        assert served.get()[0] == 200
        for connection in crowd[:8]:
            assert read_all(connection) == b""
        crowd[-1].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert read_all(crowd[-1]).endswith(b"metrics\n")
        for connection in crowd:
            connection.close()


def test_closing_cuts_clients_off_and_frees_the_port() -> None:
    with serving(deadline_s=60) as served:
        silent = served.raw()
        assert served.get()[0] == 200
        served.server.close()
        assert read_all(silent) == b""
        assert served.server.error
        listen("127.0.0.1", served.address[1]).close()


@pytest.mark.parametrize("address", ["::1", "[::1]"])
def test_ipv6(address: str) -> None:
    with serving(address) as served:
        assert served.address[0] == "::1"
        assert served.get()[0] == 200


def test_a_star_is_every_address_of_both_families() -> None:
    with serving("*") as served:
        for host in ("127.0.0.1", "::1"):
            served.address = (host, served.address[1])
            assert served.get()[0] == 200


def test_a_taken_port_is_one_clear_sentence_and_exit_code_3() -> None:
    with (
        serving() as served,
        pytest.raises(AddressInUse, match=r"^port \d+ on 127.0.0.1.*--prometheus_port$") as caught,
    ):
        listen("127.0.0.1", served.address[1])
    assert exit_code_of(caught.value) == exit_codes.ADDRESS_IN_USE


@pytest.mark.parametrize(
    ("address", "what"), [("192.0.2.7", "of this machine"), ("example.org", "not an IP"), ("fe80::1%none0", "not an")]
)
def test_an_address_that_is_not_here_is_a_bad_flag(address: str, what: str) -> None:
    with pytest.raises(DynologError, match=what) as caught:
        listen(address, 0)
    assert exit_code_of(caught.value) == exit_codes.BAD_FLAG


def test_a_forbidden_port_says_which_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dynolog.exporters.prometheus.server._bind", refuse)
    with pytest.raises(CannotServe, match="above 1023") as caught:
        listen("127.0.0.1", 80)
    assert exit_code_of(caught.value) == exit_codes.NO_PERMISSION


def context(**given: FlagValue) -> ExporterContext:
    flags = (USE_PROMETHEUS, ADDRESS, PORT, NAMES)
    return ExporterContext(
        settings=Settings(flags, {"use_prometheus": True, "prometheus_port": 0, **given}),
        catalogue=catalogue(),
        hostname="h",
        write_log=lambda *_: None,
        owners=OWNERS,
    )


@contextlib.contextmanager
def exporting(**given: FlagValue) -> Iterator[PrometheusExporter]:
    exporter = make(context(**given))
    try:
        yield exporter
    finally:
        exporter.close()


def scrape(exporter: PrometheusExporter) -> str:
    host, _, port = exporter.destination.removeprefix("http://").removesuffix("/metrics").rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=5)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


RECORD = Record(wall_ns=WALL_NS, source="kernel", values={"rx_bytes.eth0": 5}, intervals_ns={"network": SECOND_NS})


def test_what_is_exported_can_be_scraped_in_the_style_that_was_chosen() -> None:
    with exporting() as exporter:
        exporter.export([RECORD, RECORD])
        assert 'rx_bytes{host_name="h",net="eth0"} 5\n' in scrape(exporter)
    with exporting(prometheus_names="standard", prometheus_address="::1") as exporter:
        exporter.export([RECORD, RECORD])
        assert 'dynolog_network_receive_bytes_total{device="eth0"} 10\n' in scrape(exporter)
        assert exporter.destination.startswith("http://[::1]:")


def test_before_the_first_record_there_is_only_who_we_are() -> None:
    with exporting() as exporter:
        lines = [line for line in scrape(exporter).splitlines() if line[0] != "#"]
        assert [line.partition("{")[0] for line in lines] == ["dynolog_build_info"]


def test_an_export_that_nobody_can_scrape_is_an_error() -> None:
    """The fan-out then counts it as lost and `dyno status --verbose` shows why."""
    with exporting() as exporter:
        exporter.close()
        with pytest.raises(OSError, match="ended"):
            exporter.export([RECORD])


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dynolog.exporters.prometheus.library", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "prometheus_client"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(FlagError, match=r"pip install 'dynolog\[prometheus\]'"):
        make(context())


def test_the_flags_are_those_of_the_original_and_the_style() -> None:
    assert [(flag.name, flag.default) for flag in SPEC.flags] == [
        ("use_prometheus", False),
        ("prometheus_address", "127.0.0.1"),
        ("prometheus_port", 8080),
        ("prometheus_names", "dynolog"),
    ]
