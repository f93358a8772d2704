"""Many names in few words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.host_fold import folded
from dynolog.fleet.hostlist import parse_hosts

NAMES = st.from_regex(r"[a-z]{1,2}[0-9]{0,3}(-ib|\.x)?", fullmatch=True)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu1"], "gpu1"),
        (["gpu1", "gpu2"], "gpu[1-2]"),
        (["gpu098", "gpu099", "gpu100", "gpu070"], "gpu[070,098-100]"),
        (["n8", "n9", "n10", "n08"], "n[8-10,08]"),
        (["b1n3", "b1n4", "b2n3"], "b1n[3-4],b2n3"),
        (["gpu1-ib", "gpu2-ib", "login"], "gpu[1-2]-ib,login"),
        (["gpu1:1779", "gpu2:1779", "gpu3"], "gpu[1-2]:1779,gpu3"),
        (["localhost:41101", "localhost:41102"], "localhost:41101,localhost:41102"),
        (["10.0.0.9", "10.0.0.10"], "10.0.0.[9-10]"),
        (["fe80::1", "[fe80::2]:1779"], "fe80::1,[fe80::2]:1779"),
        (["gpu1", "gpu1"], "gpu1"),
        ([], ""),
    ],
)
def test_names_that_differ_in_their_last_number_share_brackets(names: list[str], text: str) -> None:
    """Zeros in front and ports stay; what has no number, or is an address of IPv6, stands alone."""
    assert folded(names) == text


def test_beyond_so_many_ranges_the_rest_is_counted() -> None:
    """Every hundredth host of 2,000 is dead: 20 of them at most are named."""
    names = [f"gpu{number:04}" for number in range(0, 6000, 2)]
    assert folded(names, 3) == "gpu[0000,0002,0004] and 2,997 more"


@given(st.lists(NAMES, min_size=1, max_size=40, unique=True))
def test_a_list_takes_back_what_was_folded(names: list[str]) -> None:
    """What is said of hosts can be typed after --hosts."""
    assert {target.host for target in parse_hosts(folded(names, 100), 1778)} == set(names)
