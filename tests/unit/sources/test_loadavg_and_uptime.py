"""/proc/loadavg, /proc/uptime and the boot id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import loadavg, uptime
from dynolog.sources.host_files import HostFiles
from fakes.collector_context import HostTree


def test_load_fields() -> None:
    assert loadavg.parse(b"0.15 1.04 12.01 2/99 6765\n") == loadavg.LoadAverage(0.15, 1.04, 12.01, 2, 99)


@pytest.mark.parametrize("data", [b"", b"1 2 3\n", b"1 2 x 1/2 3\n", b"1 2 3 12 5\n", b"nan 2 3 1/2 4\n"])
def test_a_load_that_does_not_parse_is_unavailable(data: bytes, host_tree: HostTree) -> None:
    host_tree.write("proc/loadavg", data)
    with pytest.raises(SourceUnavailable, match="/proc/loadavg"):
        loadavg.LoadAverageReader(HostFiles(str(host_tree.root))).read()


def test_uptime_is_whole_seconds() -> None:
    assert uptime.parse(b"1103.98 2136.43\n") == 1103


@pytest.mark.parametrize("data", [b"", b"x 1\n", b"-5.1 2\n", b".5 1\n"])
def test_an_uptime_that_does_not_parse_is_unavailable(data: bytes, host_tree: HostTree) -> None:
    host_tree.write("proc/uptime", data)
    with pytest.raises(SourceUnavailable, match="/proc/uptime"):
        uptime.UptimeReader(HostFiles(str(host_tree.root))).uptime_s()


@pytest.mark.parametrize("text", ["", "not-a-uuid", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f"])
def test_a_boot_id_that_is_none_is_missing(text: str, host_tree: HostTree) -> None:
    host_tree.write("proc/sys/kernel/random/boot_id", text + "\n")
    assert uptime.UptimeReader(HostFiles(str(host_tree.root))).boot_id() is None


@given(st.binary(max_size=60) | st.from_regex(rb"[0-9. /nainf_+-]{0,40}", fullmatch=True))
def test_any_bytes_parse_or_raise_valueerror(data: bytes) -> None:
    for parse in (loadavg.parse, uptime.parse):
        try:
            parse(data)
        except ValueError:
            continue
