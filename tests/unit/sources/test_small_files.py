"""Small sysfs files: single numbers and CPU lists."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.sources.attribute import read_attribute, read_integer
from dynolog.sources.cpu_ids import cpu_ids
from dynolog.sources.host_files import HostFiles
from dynolog.sources.topology import parse_cpu_list
from fakes.collector_context import HostTree


@pytest.mark.parametrize(
    ("content", "number"), [("42\n", 42), ("-5\n", -5), ("", None), ("N/A (no PMA)\n", None), ("0x1\n", None)]
)
def test_an_integer_or_nothing(host_tree: HostTree, content: str, number: int | None) -> None:
    host_tree.write("x", content)
    assert read_integer(str(host_tree.root / "x")) == number


def test_a_missing_file_and_a_directory_are_nothing(host_tree: HostTree) -> None:
    """D10, D12."""
    host_tree.root.mkdir(parents=True)
    assert read_integer(str(host_tree.root / "x")) is None
    assert read_integer(str(host_tree.root)) is None
    assert read_attribute(str(host_tree.root)) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80))
def test_any_bytes_are_an_integer_or_nothing(host_tree: HostTree, content: bytes) -> None:
    host_tree.write("x", content)
    read_integer(str(host_tree.root / "x"))
    host_tree.write("sys/devices/system/cpu/online", content)
    cpu_ids(HostFiles(str(host_tree.root)))


@given(st.text("0123456789-, x\n", max_size=20))
def test_any_cpu_list_parses_or_raises_valueerror(text: str) -> None:
    try:
        cpus = parse_cpu_list(text)
    except ValueError:
        return
    assert all(0 <= cpu < 1 << 16 for cpu in cpus)


@given(st.sets(st.integers(0, 300)))
def test_a_cpu_list_is_read_back(cpus: set[int]) -> None:
    assert set(parse_cpu_list(",".join(map(str, sorted(cpus))))) == cpus


def test_ranges_include_both_ends_and_absurd_ones_are_refused() -> None:
    assert parse_cpu_list("0-3,8,10-11\n") == (0, 1, 2, 3, 8, 10, 11)
    with pytest.raises(ValueError, match="no machine"):
        parse_cpu_list("0-99999999999")
