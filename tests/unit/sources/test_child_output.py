"""What a vendor's library prints reaches the log, and never more than a person can read."""

import logging
import os
from collections.abc import Iterator

import pytest

from dynolog.sources.child_output import ChildOutput


class Pipe:
    """An output, the end that prints into it, and a clock in seconds."""

    def __init__(self) -> None:
        read, self.write = os.pipe()
        os.set_blocking(read, False)
        self.now_s = 0.0
        self.output = ChildOutput(read, "the nvml process", lambda: self.now_s)

    def prints(self, data: bytes) -> None:
        os.write(self.write, data)
        assert self.output.drain()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.write)
    made.output.close()


def test_lines_are_logged_whole_and_printable(pipe: Pipe, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pipe.prints(b"half a ")
    assert not caplog.records
    pipe.prints(b"line\n\n\x1b[31mred\xff\n")
    assert caplog.messages == ["the nvml process prints: half a line", "the nvml process prints: [31mred\ufffd"]


def test_what_exceeds_twenty_lines_a_minute_is_counted(pipe: Pipe, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pipe.prints(b"noise\n" * 5000)
    assert len(caplog.messages) == 20
    pipe.now_s = 61
    pipe.prints(b"again\n")
    assert caplog.messages[20:] == [
        "the nvml process printed 4980 lines more, which were left out",
        "the nvml process prints: again",
    ]


def test_a_line_without_an_end_is_cut(pipe: Pipe, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(20):
        pipe.prints(b"x" * 60_000)
    pipe.prints(b"\n")
    assert len(caplog.messages[0]) < 400


def test_the_last_words_are_kept_for_the_report_of_a_crash(pipe: Pipe) -> None:
    pipe.prints(b"one\ntwo\nthree\nfour\nand no end")
    assert pipe.output.last_words == "two | three | four | and no end"


def test_a_closed_pipe_is_told() -> None:
    pipe = Pipe()
    os.close(pipe.write)
    assert not pipe.output.drain()
    pipe.output.close()
