"""Xid errors: each counts once; the same with each major."""

from fakes.dcgm.library import Rig, of


def test_each_xid_counts_once_and_keeps_its_time(rig: Rig) -> None:
    """B16: two equal codes in one interval, another later, then a healthy GPU; what was before the start is history."""
    start_us = rig.script.now_us
    rig.script.say(f"xid 0 {start_us - 1} 79")
    backend = rig.backend()
    assert not [key for key in of(backend.sample(), 0).counters if key.startswith("xid")]
    rig.script.say(
        f"xid 0 {start_us + 2_000_000} 31", f"xid 0 {start_us + 3_000_000} 31", f"xid 1 {start_us + 3_000_000} 94"
    )
    sample = rig.next_sample(backend)
    assert of(sample, 0).counters["xid_errors.31"] == 2
    assert of(sample, 0).values["xid_last_seen_timestamp.31"] == start_us / 1e6 + 3
    assert of(sample, 1).counters["xid_errors.94"] == 1
    rig.script.say(f"xid 0 {start_us + 12_000_000} 31")
    for _ in range(5):
        sample = rig.next_sample(backend)
    assert of(sample, 0).counters["xid_errors.31"] == 3
    assert of(sample, 0).values["xid_last_seen_timestamp.31"] == start_us / 1e6 + 12
    assert "xid_errors.79" not in of(sample, 0).counters


def test_counts_of_errors_outlive_a_restart_of_the_engine(rig: Rig) -> None:
    """B09, B16: what happened before stays counted, what the new engine tells comes on top, once."""
    backend = rig.backend("203", address="localhost")
    rig.script.say(f"xid 0 {rig.script.now_us + 1_000_000} 31")
    assert of(rig.next_sample(backend), 0).counters["xid_errors.31"] == 1
    rig.script.say("engine 2", f"xid 0 {rig.script.now_us + 1_000_000} 31")
    assert of(rig.next_sample(backend), 0).counters["xid_errors.31"] == 2


def test_a_slot_that_says_zero_is_no_error(rig: Rig) -> None:
    """B13: some versions store 0 for 'none so far'."""
    backend = rig.backend("203")
    rig.script.say(f"xid 0 {rig.script.now_us + 1_000_000} 0")
    assert not [key for key in of(rig.next_sample(backend), 0).counters if key.startswith("xid")]


def test_an_error_is_not_counted_again_when_watches_are_redone(rig: Rig) -> None:
    """B16: a GPU goes, and the others are watched anew."""
    backend = rig.backend("203")
    rig.script.say(f"xid 0 {rig.script.now_us + 1_000_000} 31")
    rig.next_sample(backend)
    rig.script.say("absent 7")
    assert of(rig.next_sample(backend), 0).counters["xid_errors.31"] == 1


def test_the_error_that_made_a_gpu_vanish_is_told(rig: Rig) -> None:
    """B16: Xid 79, and in the same interval the GPU is gone."""
    backend = rig.backend("203")
    backend.sample()
    at_us = rig.script.now_us + 1_000_000
    rig.script.say(f"xid 3 {at_us} 79", "absent 3")
    lost = of(rig.next_sample(backend), 3)
    assert (lost.is_up, lost.counters) == (False, {"xid_errors.79": 1})
    assert lost.values == {"xid_last_seen_timestamp.79": at_us / 1e6}


def test_errors_do_not_move_to_another_gpu_with_the_same_number(rig: Rig) -> None:
    """B09: an engine that was restarted without a lost GPU numbers the others anew."""
    backend = rig.backend("203", address="localhost")
    rig.script.say(f"xid 0 {rig.script.now_us + 1_000_000} 31", f"xid 1 {rig.script.now_us + 1_000_000} 31")
    rig.next_sample(backend)
    rig.script.say("engine 2", "value 0 54 GPU-another", "value 0 57 00000000:77:00.0")
    sample = rig.next_sample(backend)
    assert "xid_errors.31" not in of(sample, 0).counters
    assert of(sample, 1).counters["xid_errors.31"] == 1
