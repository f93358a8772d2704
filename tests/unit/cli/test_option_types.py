"""The values of options."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.cli import option_types


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", (0, "")),
        ("90210", (90210, "")),
        ("18446744073709551615", (2**64 - 1, "")),
        ("90210.0", (90210, "90210.0")),
        ("90210.batch", (90210, "90210.batch")),
        ("90210_2", (-1, "90210_2")),
        ("90210_2.0", (-1, "90210_2.0")),
        ("90210+1", (-1, "90210+1")),
    ],
)
def test_job_ids_are_numbers_and_texts(text: str, expected: tuple[int, str]) -> None:
    """H01: a text id keeps its text, and its number matches nobody when it would be another job's."""
    assert option_types.job(text) == expected


@pytest.mark.parametrize("text", ["", "-5", "job", "9\n0", "18446744073709551616", "9;rm", "٣"])
def test_other_job_ids_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        option_types.job(text)


def test_pids_are_a_comma_list() -> None:
    assert option_types.pids("0") == [0]
    assert option_types.pids("12, 34,") == [12, 34]
    assert option_types.pids("") == []
    for bad in ("a", "1;2", "-3", "1.5", "2147483648"):
        with pytest.raises(argparse.ArgumentTypeError):
            option_types.pids(bad)


def test_ranks_may_be_ranges() -> None:
    assert option_types.ranks("0,2-4") == [0, 2, 3, 4]
    for bad in ("", "x", "4-2", "-1", "1-", "0-99999999"):
        with pytest.raises(argparse.ArgumentTypeError):
            option_types.ranks(bad)


def test_a_gpu_is_a_number_an_instance_or_a_uuid() -> None:
    assert option_types.gpus("0, 03,0/gi1,GPU-8f6e0c1d-aa") == ["0", "3", "0/gi1", "GPU-8f6e0c1d-aa"]
    for bad in ("", ",", "GPU", "-1", "0/1", "0;1", "a b c d e f g h"):
        with pytest.raises(argparse.ArgumentTypeError):
            option_types.gpus(bad)


@given(st.text())
def test_any_text_is_a_value_or_a_sentence(text: str) -> None:
    """No text makes an option raise anything that argparse does not turn into a line."""
    for convert in (
        option_types.job,
        option_types.pids,
        option_types.ranks,
        option_types.gpus,
        option_types.names,
        option_types.port,
        option_types.positive,
        option_types.not_negative,
        option_types.whole_seconds,
        option_types.positive_seconds,
    ):
        try:
            convert(text)
        except argparse.ArgumentTypeError as error:
            assert str(error)
