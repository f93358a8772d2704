"""What counters read: parsing what the kernel gives, and what two readings mean."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.perf_event.attributes import EventSpec, encode_attr, user_mode_only
from dynolog.sources.perf_event.reading import Counted, Reading, between, parse_reading, read_bytes
from dynolog.sources.perf_event.table import Growth, Table, growth, parse_table

WORD = st.integers(0, 2**64 - 1)
COUNT = st.integers(0, 2**48)


@st.composite
def groups(draw: st.DrawFn) -> tuple[Reading, tuple[int, ...], list[int]]:
    """A reading, the ids of its events, and an order in which the kernel gives them."""
    size = draw(st.integers(1, 8))
    ids = tuple(draw(st.lists(WORD, min_size=size, max_size=size, unique=True)))
    counts = tuple(draw(st.lists(WORD, min_size=size, max_size=size)))
    return Reading(draw(WORD), draw(WORD), counts), ids, draw(st.permutations(range(size)))


def as_read(reading: Reading, ids: Sequence[int], order: Sequence[int] | None = None) -> bytes:
    words = [len(ids), reading.enabled_ns, reading.running_ns]
    for place in range(len(ids)) if order is None else order:
        words += [reading.counts[place], ids[place]]
    return struct.pack(f"={len(words)}Q", *words)


@given(groups())
def test_a_reading_is_put_in_order_by_the_ids_of_its_events(group: tuple[Reading, tuple[int, ...], list[int]]) -> None:
    reading, ids, order = group
    data = as_read(reading, ids, order)
    assert len(data) == read_bytes(len(ids))
    assert parse_reading(data, ids) == reading


@given(groups(), st.data())
def test_a_cut_reading_is_none(group: tuple[Reading, tuple[int, ...], list[int]], data: st.DataObject) -> None:
    """A group in error reads 0 bytes."""
    reading, ids, order = group
    whole = as_read(reading, ids, order)
    assert parse_reading(whole[: data.draw(st.integers(0, len(whole) - 1))], ids) is None


@given(st.binary(max_size=200), st.lists(WORD, min_size=1, max_size=8, unique=True).map(tuple))
def test_bytes_from_anywhere_never_raise(data: bytes, ids: tuple[int, ...]) -> None:
    parse_reading(data, ids)


def test_a_reading_of_other_events_is_none() -> None:
    assert parse_reading(as_read(Reading(1, 1, (5, 6)), (1, 2)), (1, 3)) is None


def test_nothing_counted_is_not_zero() -> None:
    """E01, E02: enabled for 5 ms, running 0."""
    assert between(Reading(0, 0, (0,)), Reading(5_000_000, 0, (0,))) == Counted(0.0, None)
    assert between(Reading(0, 0, (0,)), Reading(0, 0, (0,))) is None


def test_half_of_the_time_is_scaled_up() -> None:
    assert between(Reading(100, 100, (10, 0)), Reading(300, 200, (20, 4))) == Counted(0.5, (20, 8))


def test_a_counter_that_went_back_is_unknown() -> None:
    assert between(Reading(0, 0, (10,)), Reading(100, 100, (9,))) is None


# --- many CPUs at once ----------------------------------------------------------------------------------------------------

row = st.tuples(COUNT, COUNT, COUNT, COUNT).map(lambda words: Reading(words[0], min(words[:2]), words[2:]))


def table(rows: Sequence[Reading], first_id: int = 1) -> Table:
    ids = [(first_id + 2 * place, first_id + 2 * place + 1) for place in range(len(rows))]
    data = b"".join(as_read(one, row_ids) for one, row_ids in zip(rows, ids, strict=True))
    return parse_table(data, list(range(len(rows))), ids)


@given(st.lists(row, min_size=1, max_size=6))
def test_a_table_holds_what_the_rows_read(rows: list[Reading]) -> None:
    parsed = table(rows)
    assert list(parsed.enabled_ns) == [one.enabled_ns for one in rows]
    assert list(parsed.running_ns) == [one.running_ns for one in rows]
    assert [list(column) for column in parsed.counts] == [[one.counts[event] for one in rows] for event in (0, 1)]


@given(st.lists(row, min_size=1, max_size=6), st.integers(0, 5))
def test_a_row_in_another_order_is_put_right(rows: list[Reading], which: int) -> None:
    ids = [(10 + 2 * place, 11 + 2 * place) for place in range(len(rows))]
    swapped = which % len(rows)
    data = b"".join(as_read(one, ids[place], (1, 0) if place == swapped else None) for place, one in enumerate(rows))
    parsed = parse_table(data, list(range(len(rows))), ids)
    assert [list(column) for column in parsed.counts] == [[one.counts[event] for one in rows] for event in (0, 1)]


def test_a_row_of_other_events_is_left_out() -> None:
    ids = [(1, 2), (3, 4)]
    data = as_read(Reading(9, 9, (5, 6)), (1, 2)) + as_read(Reading(9, 9, (7, 8)), (3, 99))
    parsed = parse_table(data, [0, 1], ids)
    assert list(parsed.cpus) == [0]
    assert [list(column) for column in parsed.counts] == [[5], [6]]


@given(st.lists(st.tuples(row, row), min_size=1, max_size=6))
def test_growth_is_that_of_each_row_by_itself(pairs: list[tuple[Reading, Reading]]) -> None:
    """The quick way for all rows at once gives what the plain way gives for one."""
    grown = growth(table([old for old, _ in pairs]), table([new for _, new in pairs]))
    plain = {cpu: one for cpu, (old, new) in enumerate(pairs) if (one := between(old, new))}
    counted = {cpu: one for cpu, one in plain.items() if one.counts is not None}
    assert list(grown.cpus) == list(counted)
    for place, cpu in enumerate(grown.cpus):
        assert [column[place] for column in grown.counts] == pytest.approx(counted[cpu].counts)
    if plain:
        assert grown.lowest_ratio == pytest.approx(min(one.running_ratio for one in plain.values()))


def test_a_cpu_that_was_opened_anew_has_no_growth() -> None:
    """Its counter began again, and may be beyond the old one by now."""
    before, after = table([Reading(10, 10, (1, 1))]), table([Reading(20, 20, (9, 9))], first_id=50)
    assert growth(before, after) == Growth((), 0, 0, None, [[], []])


def test_a_target_that_never_ran_is_zero_only_where_that_is_said() -> None:
    still = [Reading(10, 10, (1, 1))]
    assert growth(table(still), table(still)).cpus == []
    assert growth(table(still), table(still), idle_is_zero=True).totals() == [0, 0]


# --- what the kernel is given ---------------------------------------------------------------------------------------------


def word(attr: bytes, offset: int, kind: str = "Q") -> int:
    value: int = struct.unpack_from(f"={kind}", attr, offset)[0]
    return value


def test_the_attr_is_laid_out_as_the_kernel_reads_it() -> None:
    """Offsets of linux/perf_event.h."""
    event = EventSpec(name="x", type=7, config=0x11, config1=0x22, config2=0x33, exclude_user=True, exclude_guest=True)
    attr = encode_attr(event, disabled=True, inherit=True, enable_on_exec=True)
    assert len(attr) == word(attr, 4, "I") == 72  # PERF_ATTR_SIZE_VER1
    assert word(attr, 0, "I") == 7
    assert (word(attr, 8), word(attr, 56), word(attr, 64)) == (0x11, 0x22, 0x33)
    assert (word(attr, 16), word(attr, 24)) == (0, 0), "it counts, it does not sample"
    assert word(attr, 32) == 15, "times, id, whole group"
    assert word(attr, 40) == 1 << 0 | 1 << 1 | 1 << 4 | 1 << 12 | 1 << 20
    longer = encode_attr(EventSpec(name="x", type=7, config=1, config3=0x44), disabled=False)
    assert len(longer) == word(longer, 4, "I") == 136  # PERF_ATTR_SIZE_VER8
    assert word(longer, 128) == 0x44
    assert word(longer, 40) == 0


@pytest.mark.parametrize(
    ("flag", "bit"),
    [
        ("exclude_user", 4),
        ("exclude_kernel", 5),
        ("exclude_hv", 6),
        ("exclude_idle", 7),
        ("exclude_host", 19),
        ("exclude_guest", 20),
    ],
)
def test_each_exclusion_has_its_bit(flag: str, bit: int) -> None:
    event = EventSpec(name="x", type=0, config=0, **{flag: True})  # type: ignore[arg-type]  # the flags are bool
    assert word(encode_attr(event, disabled=False), 40) == 1 << bit


def test_user_mode_leaves_out_kernel_and_hypervisor() -> None:
    assert (
        word(encode_attr(user_mode_only(EventSpec(name="x", type=0, config=0)), disabled=False), 40) == 1 << 5 | 1 << 6
    )
