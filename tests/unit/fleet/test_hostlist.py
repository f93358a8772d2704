"""Lists of hosts: what they name, and what is refused."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.hostlist import expand, parse_hosts
from dynolog.fleet.targets import MAX_HOSTS, FleetTarget, HostsError, find_hosts


def names(text: str) -> list[str]:
    return [str(target) for target in parse_hosts(text, 1778)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu1, gpu2", ["gpu1", "gpu2"]),
        ("gpu[001-003,070]", ["gpu001", "gpu002", "gpu003", "gpu070"]),
        ("gpu[9-11]", ["gpu9", "gpu10", "gpu11"]),
        ("gpu[09-11]", ["gpu09", "gpu10", "gpu11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("c[9,010]", ["c9", "c010"]),
        ("c1001a-s[11,17]", ["c1001a-s11", "c1001a-s17"]),
        ("b2u[05,02]n3", ["b2u05n3", "b2u02n3"]),
        ("rack[0-1]_blade[0-1]", ["rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1"]),
        ("n[1][2].cluster", ["n12.cluster"]),
        ("[1-2]", ["1", "2"]),
        ("h:1779,gpu[1-2]:1780", ["h:1779", "gpu1:1780", "gpu2:1780"]),
        ("10.0.0.[1-2]", ["10.0.0.1", "10.0.0.2"]),
        ("[::1]:1779,[fe80::1%eth0],fe80::2", ["[::1]:1779", "[fe80::1%eth0]", "[fe80::2]"]),
    ],
)
def test_lists_of_slurm_and_of_people(text: str, expected: list[str]) -> None:
    """H03, H04: padding is kept, several brackets are a product, prefixes may be odd."""
    assert names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ",",
            "a,",
            "a,,b",
            "n[01",
            "n01]",
            "n[]",
            "n[01,]",
            "n[,1]",
            "n[1-]",
            "n[-1]",
            "n[3-1]",
            "n[a-b]",
            "n[[1]]",
        ),
        *("n[1-2/2]", "n[1-9999999999]", "n[0-999999]", "n[0-999][0-999]", "[0-99999],a[0-99999]", "n[１-２]"),
        *(
            "h:",
            "h:0",
            "h:65536",
            "h:x",
            "[::1",
            "[::1]x",
            "[::1]:0",
            "[x:y]:1",
            "a b",
            "a/b",
            "-h",
            ".h",
            "a\x1b",
            "a;b",
        ),
    ],
)
def test_a_bad_list_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(HostsError) as caught:
        parse_hosts(text, 1778)
    assert len(str(caught.value)) > 20


def test_a_huge_range_is_refused_before_it_is_made() -> None:
    started_s = time.monotonic()
    for text in ("n[0-999999999]", "n" + "[0-999]" * 50, ",".join(["n[0-99999]"] * 50)):
        with pytest.raises(HostsError, match=f"more than {MAX_HOSTS}"):
            parse_hosts(text, 1)
    assert time.monotonic() - started_s < 20


@given(
    st.text("abcxyz-_.09", min_size=1, max_size=5).filter(lambda text: text[0] not in "-."),
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=2),
)
def test_a_pattern_gives_every_combination_once_as_wide_as_written(
    prefix: str, ranges: list[tuple[int, int, int]]
) -> None:
    pattern = prefix + "n".join(f"[{str(low).zfill(width)}-{low + more}]" for low, more, width in ranges)
    expected = [
        prefix + "n".join(numbers)
        for numbers in itertools.product(
            *([str(number).zfill(width) for number in range(low, low + more + 1)] for low, more, width in ranges)
        )
    ]
    assert list(expand(pattern)) == expected


@given(st.text(st.sampled_from("ab[]0123456789-,:. %\n"), max_size=20))
def test_any_text_gives_hosts_or_a_sentence(text: str) -> None:
    try:
        targets = parse_hosts(text, 1778)
    except HostsError:
        return
    assert targets
    assert all(target.host and 0 < target.port < 65536 and "," not in target.host for target in targets)


@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), min_size=1, max_size=20))
def test_plain_names_come_back_as_they_are(hosts: list[str]) -> None:
    assert [target.host for target in parse_hosts(",".join(hosts), 7)] == hosts


def test_sources_are_added_up_and_each_daemon_is_asked_once() -> None:
    found = find_hosts({"--hosts": "b,a,b:1779,a"})
    assert found.targets == (FleetTarget(host="b"), FleetTarget(host="a"), FleetTarget(host="b", port=1779))
