"""The daemon's messages in each form of its log."""

import json
import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.daemon.glog import GlogHandler, GlogSink
from dynolog.daemon.log_lines import GlogLines, JsonMessages, LogfmtMessages, lines_of

WALL_NS = 1_658_446_954_141_104_000
WHERE = ("life_cycle.py", 108)


def test_a_message_as_json() -> None:
    assert JsonMessages().line("W", WALL_NS, 7, WHERE, 'a "b"\nc') == (
        b'{"time":"2022-07-21T23:42:34.141104000Z","level":"warning","message":"a \\"b\\"\\nc","file":"life_cycle.py:108","thread":7}\n'
    )


def test_a_message_as_logfmt() -> None:
    assert LogfmtMessages().line("I", WALL_NS, 7, WHERE, "dynolog is ready") == (
        b'time=2022-07-21T23:42:34.141104000Z level=info message="dynolog is ready" file=life_cycle.py:108 thread=7\n'
    )


def test_a_message_in_glog_form_has_its_microseconds() -> None:
    line = GlogLines().line("E", WALL_NS, 7, WHERE, "text").decode()
    assert re.fullmatch(r"E\d{8} \d\d:\d\d:34\.141104 7 life_cycle\.py:108\] text\n", line)


@pytest.mark.parametrize("form", ["glog", "json", "logfmt"])
@given(text=st.text())
def test_a_message_is_one_line_whatever_it_says(form: str, text: str) -> None:
    line = lines_of(form).line("F", WALL_NS, 7, WHERE, text)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


def test_in_json_every_line_of_the_log_is_an_object(tmp_path: Path) -> None:
    """Messages, tracebacks and whole lines of exporters alike."""
    path = tmp_path / "log"
    sink = GlogSink(str(path), lines=lines_of("json"))
    logger = logging.Logger("test")
    logger.addHandler(GlogHandler(sink))
    try:
        raise ValueError("so it is")
    except ValueError:
        logger.exception("went wrong")
    sink.write_line(b'{"source":"kernel"}')
    sink.close()
    message, record = (json.loads(line) for line in path.read_text().splitlines())
    assert message["level"] == "error"
    assert "ValueError: so it is" in message["message"]
    assert record == {"source": "kernel"}


def test_what_a_full_disk_lost_is_said_in_the_form_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink("/dev/full", lines=lines_of("json"))
    sink.write("I", "a.py", 1, "lost")
    assert sink.flush(5)
    sink._path = str(path)
    sink.reopen()
    sink.write("I", "a.py", 2, "kept")
    sink.close()
    said = [json.loads(line)["message"] for line in path.read_text().splitlines()]
    assert said == ["1 log lines were lost: No space left on device", "kept"]


def test_a_whole_line_counts_as_information(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = GlogSink(str(path), minimum_level=1)
    sink.write_line(b"record")
    sink.close()
    assert path.read_text() == ""
