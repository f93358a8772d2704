"""Notices of a collector."""

import pytest

from dynolog.pipeline.notice_board import NoticeBoard


def test_the_same_sentence_again_is_silent_and_a_new_one_replaces_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    board = NoticeBoard("nic")
    for sentence in ("eth0 is down", "eth0 is down", "eth0 has no speed"):
        board.say("eth0", sentence)
    board.say("eth1", "eth1 is down")
    assert board.sentences == ("eth0 has no speed", "eth1 is down")
    assert [record.message for record in caplog.records] == [
        "nic: eth0 is down",
        "nic: eth0 has no speed",
        "nic: eth1 is down",
    ]


def test_an_empty_sentence_takes_a_notice_back() -> None:
    board = NoticeBoard("nic")
    board.say("eth0", "eth0 is down")
    board.say("eth0", "")
    board.say("never", "")
    assert board.sentences == ()


def test_devices_that_come_and_go_do_not_fill_memory() -> None:
    board = NoticeBoard("nic")
    for number in range(1000):
        board.say(f"veth{number}", f"veth{number} is down")
    assert len(board.sentences) == 64
    assert board.sentences[-1] == "veth999 is down"
