"""Looks at processes: nobody waits for them, and one that hangs costs only itself."""

import os
import threading
from collections.abc import Iterator

import pytest

from dynolog.attribution import identities as room
from dynolog.attribution.identities import Identities
from dynolog.attribution.process_identity import ProcessIdentity

DEADLINE_S = 30


class FakeLook:
    """Processes by pid and start time; a look at a pid in `gates` waits until its gate opens."""

    def __init__(self) -> None:
        self.started: dict[int, int] = {}
        self.owners: dict[int, int] = {}
        self.gates: dict[int, threading.Event] = {}
        self.at_gate = threading.Event()
        self.looks: list[int] = []
        self.known = True
        self.error: Exception | None = None

    def start_time(self, pid: int) -> int:
        try:
            return self.started[pid]
        except KeyError:
            raise ProcessLookupError from None

    def owner(self, pid: int) -> int:
        return self.owners.get(pid, 1000)

    def look(self, pid: int) -> ProcessIdentity:
        self.looks.append(pid)
        if gate := self.gates.get(pid):
            self.at_gate.set()
            assert gate.wait(DEADLINE_S)
        if self.error:
            raise self.error
        return ProcessIdentity(pid=pid, start_time_ticks=self.start_time(pid), environment_is_known=self.known)


@pytest.fixture
def look() -> FakeLook:
    return FakeLook()


@pytest.fixture
def identities(look: FakeLook) -> Iterator[Identities]:
    identities = Identities(look)
    yield identities
    identities.close()
    for gate in look.gates.values():
        gate.set()


def known(identities: Identities, pid: int) -> ProcessIdentity | None:
    """What is known once all looks have returned."""
    identities.get(pid)
    assert identities.wait_idle(DEADLINE_S)
    return identities.get(pid)


def test_a_process_is_known_a_moment_after_it_was_asked_for_and_looked_at_once(
    identities: Identities, look: FakeLook
) -> None:
    look.started[5] = 100
    assert identities.get(5) is None
    assert identities.wait_idle(DEADLINE_S)
    found = identities.get(5)
    assert found is not None
    assert identities.get(5) is found
    assert look.looks == [5]


def test_a_reused_pid_is_another_process(identities: Identities, look: FakeLook) -> None:
    look.started[5] = 100
    assert known(identities, 5)
    look.started[5] = 200
    assert identities.get(5) is None
    found = known(identities, 5)
    assert found is not None
    assert found.start_time_ticks == 200


def test_a_process_that_ends_before_the_look_is_nobody(identities: Identities, look: FakeLook) -> None:
    """C09."""
    assert identities.get(5) is None
    assert look.looks == []
    look.started[5], look.error = 100, ProcessLookupError()
    assert known(identities, 5) is None
    assert identities.failures == 0


def test_an_error_of_ours_is_counted_and_costs_that_process(
    identities: Identities, look: FakeLook, caplog: pytest.LogCaptureFixture
) -> None:
    look.started |= {5: 1, 6: 1}
    look.error = RuntimeError("x")
    assert known(identities, 5) is None
    assert known(identities, 6) is None
    assert identities.failures >= 2
    assert caplog.text.count("could not be looked at") == 1
    look.error = None
    assert known(identities, 6)


def test_a_look_that_hangs_holds_up_nobody_else(
    identities: Identities, look: FakeLook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "STALL_S", -1.0)
    look.started |= {5: 1, 6: 1}
    look.gates[5] = threading.Event()
    assert identities.get(5) is None
    assert look.at_gate.wait(DEADLINE_S)
    hanging = [thread for thread in threading.enumerate() if thread.name == "attribution"]
    assert known(identities, 6)
    assert ("stalled 5", "reading /proc/5 has not returned: whose process it is stays unknown") in identities.notices
    assert identities.get(5) is None
    assert look.looks.count(5) == 1
    look.gates[5].set()
    for thread in hanging:
        thread.join(DEADLINE_S)
    assert identities.get(5)
    assert look.looks.count(5) == 1
    assert identities.notices == ()


def test_one_user_cannot_make_all_looks_hang(
    identities: Identities, look: FakeLook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(10, 20):
        look.started[pid] = 1
        look.gates[pid] = threading.Event()
        identities.get(pid)
    look.started[5], look.owners[5] = 1, 1001
    monkeypatch.setattr(room, "STALL_S", -1.0)
    for _ in range(2):
        assert look.at_gate.wait(DEADLINE_S)
        look.at_gate.clear()
        assert identities.get(5) is None
    assert identities.wait_idle(DEADLINE_S)
    assert identities.get(5)
    assert look.looks == [10, 11, 5]
    assert identities.get(12) is None
    assert look.looks == [10, 11, 5]


@pytest.mark.parametrize(("uid", "remedy"), [(1000, "run the daemon as root"), (0, "CAP_SYS_PTRACE")])
def test_what_cannot_be_read_is_said_with_the_remedy(
    identities: Identities, look: FakeLook, monkeypatch: pytest.MonkeyPatch, uid: int, remedy: str
) -> None:
    """Root in a container may not read it either: running as root is no advice for root."""
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    look.started[5], look.known = 1, False
    assert known(identities, 5)
    ((key, sentence),) = identities.notices
    assert key == "environ"
    assert remedy in sentence


def test_after_the_end_nothing_is_looked_at(identities: Identities, look: FakeLook) -> None:
    look.started[5] = 1
    identities.close()
    assert identities.get(5) is None
    assert look.looks == []
