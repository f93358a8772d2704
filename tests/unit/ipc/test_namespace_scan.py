"""Which namespaces hold trainers, on a /proc that a test writes."""

import os
import shutil
from pathlib import Path

import pytest

from dynolog.ipc.namespace_scan import NamespaceScan, ScanResult
from dynolog.ipc.namespace_socket import missing_capabilities

OWN = 4026531840
HEADING = "Num       RefCount Protocol Flags    Type St Inode Path\n"
TRAINER = HEADING + "00: 00000002 00000000 00000000 0002 01  8002 @dynoconfigclient0d1e@\n"
NOTHING = ScanResult({}, ())


class FakeProc:
    """Processes with a network namespace each; counts how often a link is read."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.links_read: list[str] = []
        (root / "self").mkdir(parents=True)
        read = os.readlink

        def counted(path: str) -> str:
            self.links_read.append(os.path.relpath(path, root).split("/", 1)[0])
            return read(path)

        monkeypatch.setattr(os, "readlink", counted)

    def process(self, pid: int, inode: int, table: str = HEADING) -> None:
        directory = self.root / str(pid)
        (directory / "ns").mkdir(parents=True, exist_ok=True)
        (directory / "net").mkdir(exist_ok=True)
        (directory / "ns" / "net").unlink(missing_ok=True)
        (directory / "ns" / "net").symlink_to(f"net:[{inode}]")
        (directory / "net" / "unix").write_text(table)

    def end(self, *pids: int) -> None:
        for pid in pids:
            shutil.rmtree(self.root / str(pid))


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProc:
    return FakeProc(tmp_path / "proc", monkeypatch)


@pytest.fixture
def scan(proc: FakeProc) -> NamespaceScan:
    return NamespaceScan(str(proc.root), OWN)


def test_a_namespace_with_a_trainer_is_found_and_one_without_is_not(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(1, OWN, TRAINER)
    proc.process(20, 50, TRAINER)
    proc.process(30, 60)
    assert scan.update(set()) == ScanResult({50: 20}, ())


def test_a_namespace_is_left_when_its_last_process_has_gone(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(20, 50, TRAINER)
    proc.process(21, 50, TRAINER)
    scan.update(set())
    proc.end(20)
    assert scan.update({50}) == NOTHING
    proc.end(21)
    assert scan.update({50}) == ScanResult({}, (50,))
    assert scan.update(set()) == NOTHING


def test_only_new_processes_are_looked_at(proc: FakeProc, scan: NamespaceScan) -> None:
    """Twice each, and one of each other namespace every time."""
    for pid in range(1, 101):
        proc.process(pid, OWN)
    proc.process(200, 50)
    scan.update(set())
    scan.update(set())
    proc.links_read.clear()
    scan.update(set())
    assert proc.links_read == ["200"]
    proc.process(300, OWN)
    proc.links_read.clear()
    scan.update(set())
    assert sorted(proc.links_read) == ["200", "300"]


def test_a_process_that_a_runtime_moves_after_its_start_is_found(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(20, OWN)
    assert scan.update(set()) == NOTHING
    proc.process(20, 50, TRAINER)
    assert scan.update(set()) == ScanResult({50: 20}, ())


def test_a_reused_pid_does_not_keep_a_namespace(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(20, 50, TRAINER)
    scan.update(set())
    scan.update({50})
    proc.process(20, 70)
    assert scan.update({50}) == ScanResult({}, (50,))


def test_a_zombie_does_not_keep_a_namespace(proc: FakeProc, scan: NamespaceScan) -> None:
    """Its link cannot be read, though its pid is still there."""
    proc.process(20, 50, TRAINER)
    proc.process(21, 50, TRAINER)
    scan.update(set())
    scan.update({50})
    for pid in (20, 21):
        (proc.root / str(pid) / "ns" / "net").unlink()
    assert scan.update({50}) == ScanResult({}, (50,))


def test_a_process_that_ends_during_the_scan_costs_only_itself(proc: FakeProc, scan: NamespaceScan) -> None:
    (proc.root / "19").mkdir()
    proc.process(20, 50, TRAINER)
    assert scan.update(set()) == ScanResult({50: 20}, ())


def test_a_late_import_of_torch_is_found_within_six_scans(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(20, 50)
    for _ in range(30):
        scan.update(set())
    proc.process(20, 50, TRAINER)
    results = [scan.update(set()) for _ in range(6)]
    assert [result.found for result in results].count({50: 20}) == 1


def test_a_new_process_makes_a_quiet_namespace_interesting_at_once(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(20, 50)
    for _ in range(30):
        scan.update(set())
    for pid in (20, 21):
        proc.process(pid, 50, TRAINER)
    assert 50 in scan.update(set()).found


def test_a_namespace_that_could_not_be_joined_is_not_tried_at_every_scan(proc: FakeProc, scan: NamespaceScan) -> None:
    proc.process(20, 50, TRAINER)
    assert 50 in scan.update(set()).found
    scan.pause(50)
    proc.process(21, 50, TRAINER)
    results = [bool(scan.update(set()).found) for _ in range(6)]
    assert results == [False] * 5 + [True]


def test_a_thousand_namespaces_that_came_and_went_leave_nothing(proc: FakeProc, scan: NamespaceScan) -> None:
    for pid in range(1000, 2000):
        proc.process(pid, pid * 7, TRAINER)
    found = scan.update(set()).found
    assert len(found) == 1000
    scan.update(found)
    proc.end(*range(1000, 2000))
    assert set(scan.update(found).emptied) == set(found)
    assert not (scan._namespace_of or scan._members or scan._pauses or scan._fresh)


def test_capabilities_that_are_missing_are_named() -> None:
    assert missing_capabilities(b"Name:\tx\nCapEff:\t000001ffffffffff\n") == ()
    assert missing_capabilities(b"CapEff:\t0000000000200000\n") == ("CAP_SYS_PTRACE",)
    assert missing_capabilities(b"CapEff:\t0000000000000000\n") == ("CAP_SYS_ADMIN", "CAP_SYS_PTRACE")
    assert missing_capabilities(b"") == ("CAP_SYS_ADMIN", "CAP_SYS_PTRACE")
