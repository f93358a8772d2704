"""A call that may hang, on a thread of its own."""

import threading

import pytest

from dynolog.sources.errand import Errand


def test_the_answer_is_taken_once() -> None:
    errand = Errand("test", lambda: 5)
    assert errand.start()
    assert errand.wait(10)
    assert errand.take() == 5
    assert errand.take() is None


def test_one_call_at_a_time_and_the_next_after_it_returned() -> None:
    release = threading.Event()
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        release.wait(10)
        return len(calls)

    errand = Errand("test", call)
    assert errand.start()
    assert not errand.wait(0.001)
    assert not errand.start()
    assert errand.take() is None
    release.set()
    assert errand.wait(10)
    assert errand.start()
    assert errand.wait(10)
    assert errand.take() == 2


def test_what_the_call_raised_is_raised_where_it_is_taken() -> None:
    def call() -> int:
        raise OSError(5, "broken")

    errand = Errand("test", call)
    errand.start()
    assert errand.wait(10)
    with pytest.raises(OSError, match="broken"):
        errand.take()
