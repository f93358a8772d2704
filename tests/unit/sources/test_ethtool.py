"""Statistics of network devices' drivers by the ioctl."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.ethtool import EthtoolIoctl, EthtoolReader, parse_names
from fakes.ethtool_device import GSSET_INFO, GSTATS, GSTRINGS, FakeEthtool

NAMES = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=32).map(str.strip)


def every(name: str) -> str:
    return name


@given(st.dictionaries(NAMES.filter(bool), st.integers(0, 2**64 - 1), max_size=60))
def test_names_and_64_bit_numbers_come_back_as_the_driver_has_them(statistics: dict[str, int]) -> None:
    reader = EthtoolReader(every, FakeEthtool({"eth0": statistics}))
    assert reader.read("eth0") == statistics
    assert reader.read("eth0") == statistics


@given(st.binary(max_size=200), st.integers(0, 10))
def test_any_bytes_are_names_and_never_more_than_asked_for(data: bytes, count: int) -> None:
    names = parse_names(data, count)
    assert len(names) <= count
    assert all(len(name) <= 32 for name in names)


def test_names_are_asked_for_once_and_again_when_their_number_changes() -> None:
    device = FakeEthtool({"eth0": {"a": 1, "b": 2}})
    reader = EthtoolReader(every, device)
    reader.read("eth0")
    reader.read("eth0")
    assert device.calls == [GSSET_INFO, GSTRINGS, GSTATS, GSSET_INFO, GSTATS]
    device.devices["eth0"] = {"new": 9, "a": 3, "b": 4}
    assert reader.read("eth0") == {"new": 9, "a": 3, "b": 4}


def test_statistics_that_change_between_two_calls_are_never_given_under_old_names() -> None:
    device = FakeEthtool({"eth0": {"a": 1, "b": 2}})
    reader = EthtoolReader(every, device)
    reader.read("eth0")
    device.changes[GSTATS] = ("eth0", {"new": 9, "a": 3, "b": 4})
    assert reader.read("eth0") == {"new": 9, "a": 3, "b": 4}


def test_only_what_is_wanted_is_given_and_nothing_is_asked_of_a_device_that_has_none_of_it() -> None:
    device = FakeEthtool({"eth0": {"a": 1, "b": 2}, "eth1": {"b": 3}, "eth2": {}, "eth3": None})
    reader = EthtoolReader(lambda name: "alpha" if name == "a" else "", device)
    assert reader.read("eth0") == {"alpha": 1}
    assert [reader.read(name) for name in ("eth1", "eth2", "eth3")] == [{}, {}, {}]
    assert device.calls.count(GSTATS) == 1


def test_the_first_of_two_statistics_with_one_name_counts() -> None:
    reader = EthtoolReader(lambda name: name[:1], FakeEthtool({"eth0": {"a1": 1, "a2": 2}}))
    assert reader.read("eth0") == {"a": 1}


@pytest.mark.parametrize("name", ["", "no-such-device", "x" * 16, "a\0b"])
def test_no_such_device_is_an_error_of_the_real_ioctl(name: str) -> None:
    with pytest.raises(OSError) as caught:
        EthtoolReader(every, EthtoolIoctl()).read(name)
    assert caught.value.errno == errno.ENODEV


def test_the_loopback_device_keeps_none() -> None:
    assert EthtoolReader(every).read("lo") == {}
