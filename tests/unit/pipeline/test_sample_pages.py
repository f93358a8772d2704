"""Pages of samples: which rows, in which columns, and how all of them are had."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.host_samples import SamplePage
from dynolog.pipeline import sample_pages
from dynolog.pipeline.sample_pages import LONGEST_HELD_NS, PAGE_VALUES, Row, page


def row(wall_ns: int, elapsed_ns: int = 100, names: tuple[str, ...] = ("a", "b"), value: float = 1.0) -> Row:
    return Row(wall_ns, wall_ns + 7, elapsed_ns, names, array("d", [value] * len(names)))


def times(found: SamplePage) -> list[int]:
    return sorted(at for block in found.blocks for at in block.begin_wall_ns)


def test_a_page_has_the_samples_that_reach_into_the_time_in_columns() -> None:
    rows = [row(at, value=at) for at in range(1000, 2000, 100)]
    (block,) = page(rows, 1150, 1400).blocks
    assert block.begin_wall_ns == (1100, 1200, 1300, 1400)
    assert block.begin_monotonic_ns == (1107, 1207, 1307, 1407)
    assert block.elapsed_ns == (100, 100, 100, 100)
    assert [(series.name, series.values) for series in block.series] == [
        ("a", (1100, 1200, 1300, 1400)),
        ("b", (1100, 1200, 1300, 1400)),
    ]


def test_what_holds_until_it_changes_counts_from_before_the_time_but_not_for_ever() -> None:
    begin_ns = 10 * LONGEST_HELD_NS
    rows = [
        row(begin_ns - LONGEST_HELD_NS - 1, 0, ("old",)),
        row(begin_ns - 20, 0, ("gpu",), 1.0),
        row(begin_ns - 10, 0, ("gpu",), 2.0),
        row(begin_ns + 5),
    ]
    blocks = page(rows, begin_ns, begin_ns + 50).blocks
    assert [(block.series[0].name, block.begin_wall_ns) for block in blocks] == [
        ("gpu", (begin_ns - 10,)),
        ("a", (begin_ns + 5,)),
    ]


def test_other_devices_make_another_block() -> None:
    rows = [row(100), row(200, names=("a", "b", "c")), row(300)]
    assert [block.begin_wall_ns for block in page(rows, 0, 1000).blocks] == [(100, 300), (200,)]


@given(
    st.lists(st.integers(0, 10_000), unique=True, max_size=60).map(sorted), st.integers(1, 9), st.integers(0, 10_000)
)
def test_pages_together_have_every_sample(begins: list[int], most: int, from_ns: int) -> None:
    """Going on where a page ends brings all, however small the pages are, and always comes to an end."""
    before, sample_pages.PAGE_VALUES = sample_pages.PAGE_VALUES, most
    try:
        rows = [row(at, elapsed_ns=1) for at in begins]
        seen: set[int] = set()
        at_ns = from_ns
        for _ in range(len(rows) + 2):
            found = page(rows, at_ns, 20_000)
            seen |= set(times(found))
            if not found.next_wall_ns:
                break
            assert found.next_wall_ns > at_ns
            at_ns = found.next_wall_ns
        assert not found.next_wall_ns
        assert seen == {at for at in begins if at >= from_ns}
    finally:
        sample_pages.PAGE_VALUES = before


def test_a_page_is_bounded() -> None:
    names = tuple(f"n{number}" for number in range(100))
    found = page([row(at, names=names) for at in range(0, 100_000, 100)], 0, 10**6)
    assert sum(len(series.values) for block in found.blocks for series in block.series) <= PAGE_VALUES
    assert found.next_wall_ns == 100 * PAGE_VALUES // 100
