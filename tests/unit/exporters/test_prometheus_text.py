"""Our pages say what the client library's would, byte for byte but for how numbers are written, and are made once."""

import gzip
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import prometheus_client.exposition as library_text
import prometheus_client.openmetrics.exposition as library_openmetrics
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from dynolog.exporters.prometheus.library import Negotiation
from dynolog.model.metric import Catalogue
from fakes.prometheus import Scraped, big_host_records

PROMETHEUS_ASKS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


@pytest.fixture(scope="module", params=["dynolog", "standard"])
def big(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scraped:
    """The big host after two reports."""
    scraped = Scraped(request.param)
    for record in big_host_records(tmp_path_factory.mktemp("big")) * 2:
        scraped.store.put(record)
    return scraped


def plain_numbers(page: str) -> list[str]:
    """The lines with every value as Python writes a float; the library writes 5.0 and 1e+06 where we write 5 and 1000000."""
    return [
        line if line.startswith("#") else re.sub(r" (\S+)$", lambda match: f" {float(match[1])!r}", line)
        for line in page.splitlines()
    ]


@pytest.mark.parametrize("openmetrics", [False, True])
def test_the_page_is_that_of_the_library(big: Scraped, openmetrics: bool) -> None:
    registry = Negotiation(big.store).registry
    encode = library_openmetrics.generate_latest if openmetrics else library_text.generate_latest
    ours = big.pages.page(openmetrics=openmetrics, compressed=False).decode()
    assert plain_numbers(ours) == plain_numbers(encode(registry).decode())
    assert ours.endswith("\n")


@pytest.mark.parametrize("openmetrics", [False, True])
def test_a_real_parser_reads_every_sample(big: Scraped, openmetrics: bool) -> None:
    assert len(big.samples(openmetrics)) > 3500


def test_promtool_has_nothing_to_say_about_the_standard_style(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool (Debian: prometheus)")
    scraped = Scraped()
    for record in big_host_records(tmp_path):
        scraped.store.put(record)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=scraped.text(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@given(st.lists(st.text(st.characters(blacklist_categories=()), min_size=1, max_size=12), unique=True, max_size=6))
def test_labels_from_outside_come_back_from_a_real_parser(names: list[str]) -> None:
    """F01: quotes, backslashes, newlines, bytes that are no UTF-8 (a mount point may hold any of them)."""
    scraped = Scraped("standard", _FILESYSTEM)
    scraped.put(filesystem={f"filesystem_free_bytes.{name}": 1 for name in names})
    for openmetrics in (False, True):
        page = scraped.pages.page(openmetrics=openmetrics, compressed=False)
        assert page.count(b"\n") == len(page.decode().split("\n")) - 1
        family = scraped.families(openmetrics).get("dynolog_filesystem_free_bytes")
        found = {sample.labels["mountpoint"] for sample in family.samples} if family else set()
        assert found == {re.sub("[\ud800-\udfff]", "\ufffd", name) for name in names}


@pytest.mark.parametrize("name", ['14" box', "back\\slash", "new\nline", '\\"\n', "a\\n", "{}=,", "µ"])
def test_the_labels_that_broke_scrapes_elsewhere(name: str) -> None:
    """F01, word for word."""
    scraped = Scraped()
    scraped.put("gpu", labels={"device": "0", "gpu_name": name, "gpu_uuid": "GPU-1"}, whole={"gpu_power_draw": 1.0})
    for openmetrics in (False, True):
        family = scraped.families(openmetrics)["dynolog_gpu_power_draw_watts"]
        assert [sample.labels["gpu_name"] for sample in family.samples] == [name]


def test_help_type_and_unit_come_from_the_catalogue() -> None:
    scraped = Scraped()
    scraped.put(network={"rx_bytes.eth0": 1})
    assert (
        "# HELP dynolog_network_receive_bytes_total Bytes received by an interface\n"
        "# TYPE dynolog_network_receive_bytes_total counter\n"
        'dynolog_network_receive_bytes_total{device="eth0"} 1\n'
    ) in scraped.text()
    page = scraped.pages.page(openmetrics=True, compressed=False).decode()
    assert (
        "# HELP dynolog_network_receive_bytes Bytes received by an interface\n"
        "# TYPE dynolog_network_receive_bytes counter\n"
        "# UNIT dynolog_network_receive_bytes bytes\n"
        'dynolog_network_receive_bytes_total{device="eth0"} 1\n'
    ) in page
    assert page.endswith("# EOF\n")


def test_a_page_is_made_once_a_report_however_often_it_is_asked_for() -> None:
    scraped = Scraped()
    scraped.put(memory={"mem_used_bytes": 1})
    pages = [scraped.pages.page(openmetrics=True, compressed=True) for _ in range(3)]
    assert pages[0] is pages[1] is pages[2]
    scraped.text()
    assert scraped.pages.rendered == 1, "both formats share their lines"
    scraped.put(memory={"mem_used_bytes": 2})
    scraped.text()
    scraped.text()
    assert scraped.pages.rendered == 2
    scraped.clock.move(3.1)
    assert "mem" not in scraped.text()
    assert scraped.pages.rendered == 3, "what is stale is taken out without a report"
    scraped.clock.move(1000)
    scraped.text()
    assert scraped.pages.rendered == 3


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", ""),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8", ""),
        (PROMETHEUS_ASKS, "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores", "# EOF\n"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8", ""),
    ],
)  # fmt: skip
def test_the_format_is_negotiated_as_the_library_does(accept: str, content_type: str, end: str) -> None:
    scraped = Scraped()
    scraped.put(memory={"mem_used_bytes": 7})
    negotiation = Negotiation(scraped.store)
    headers, body = negotiation.answer(accept, "")
    assert dict(headers)["Content-Type"] == content_type
    assert "Content-Encoding" not in dict(headers)
    assert b"dynolog_memory_used_bytes 7\n" in body
    assert body.endswith(b"# EOF\n") == bool(end)
    encode = library_text.choose_encoder(accept)[0]
    assert plain_numbers(body.decode()) == plain_numbers(encode(negotiation.registry).decode())


PIECES = [
    "application/openmetrics-text",
    "text/plain",
    "*/*",
    ",",
    ";",
    "=",
    "version=",
    "q=",
    "escaping=",
    "1.0.0",
    "1.é",
    "\n",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6))).map("".join))
@example("application/openmetrics-text;version=é")
def test_whatever_is_asked_for_there_is_a_page(accept: str) -> None:
    """A traceback in the log for each request would be a way to fill it."""
    scraped = Scraped()
    scraped.put(memory={"mem_used_bytes": 7})
    headers, body = Negotiation(scraped.store).answer(accept, accept)
    assert b"dynolog_memory_used_bytes 7\n" in (
        gzip.decompress(body) if dict(headers).get("Content-Encoding") == "gzip" else body
    )
    assert "\n" not in dict(headers)["Content-Type"]


@pytest.mark.parametrize("names", [(), ("dynolog_memory_used_bytes",)])
def test_gzip_when_it_is_accepted(names: Sequence[str]) -> None:
    scraped = Scraped()
    scraped.put(memory={"mem_used_bytes": 7})
    negotiation = Negotiation(scraped.store)
    headers, body = negotiation.answer("", "gzip, deflate", names)
    assert dict(headers)["Content-Encoding"] == "gzip"
    assert b"dynolog_memory_used_bytes 7" in gzip.decompress(body)


def test_name_restricts_the_page_as_in_the_library() -> None:
    scraped = Scraped()
    scraped.put(memory={"mem_used_bytes": 7, "mem_free_bytes": 8})
    _, body = Negotiation(scraped.store).answer("", "", ["dynolog_memory_used_bytes"])
    assert [line for line in body.decode().splitlines() if line[0] != "#"] == ["dynolog_memory_used_bytes 7.0"]


def test_the_global_registry_is_left_alone() -> None:
    """Whoever embeds us may use it."""
    scraped = Scraped()
    Negotiation(scraped.store)
    assert not [name for name in REGISTRY._names_to_collectors if "dynolog" in name]


_FILESYSTEM = Catalogue([metric for metric in Scraped().store._catalogue if metric.name == "filesystem_free_bytes"])
