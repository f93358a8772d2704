"""The same thing said of many hosts."""

from dynolog.cli.fleet.by_reason import lines_by_reason


def test_the_most_frequent_reason_comes_first_with_all_of_its_hosts() -> None:
    said = [("gpu1", "refused"), ("gpu2", "no answer"), ("gpu3", "no answer"), ("gpu4", "no answer")]
    assert list(lines_by_reason(said)) == ["gpu[2-4]: no answer", "gpu1: refused"]


def test_reasons_that_differ_in_numbers_only_are_one() -> None:
    """Each host names its own pids and capture."""
    said = [
        ("gpu1", "busy since 8 s (capture 0f72083e2d4cda35.0). Registered: pids 12, 13."),
        ("gpu2", "busy since 9 s (capture da50026df1c406b7.0). Registered: pids 14."),
    ]
    assert list(lines_by_reason(said)) == [f"gpu[1-2]: {said[0][1]} (so gpu1; the numbers of the others differ)"]


def test_words_are_never_taken_for_numbers() -> None:
    assert len(list(lines_by_reason([("a", "the bad disk"), ("b", "the dead disk")]))) == 2


def test_beyond_so_many_reasons_the_rest_is_counted() -> None:
    said = [(f"gpu{index}", "x" * (index + 1)) for index in range(30)]
    assert list(lines_by_reason(said))[-1] == "... and 10 more hosts for 10 other reasons"
