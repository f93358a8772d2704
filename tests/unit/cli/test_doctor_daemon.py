"""What `dyno doctor` says of the daemon: its word, its sockets, its port, its service, its clock; each both ways."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.cli.doctor import ipc_checks, service_checks
from dynolog.cli.doctor.checks import BY_MACHINE, BY_RPC, examine
from dynolog.cli.doctor.daemon_checks import (
    check_answer,
    check_clock_offset,
    check_collectors,
    check_exporters,
    check_missing,
)
from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Level
from dynolog.cli.doctor.ipc_checks import check_ipc, check_name, check_socket_directory
from dynolog.cli.doctor.service_checks import check_clock, check_default_socket, check_port, judge_clock
from dynolog.cli.doctor.start_checks import check_flags, check_service, judge_unit
from dynolog.model.status import CollectorState, CollectorStatus, ExporterState, ExporterStatus, RecentTrouble
from dynolog.rpc.client import Target
from dynolog.sources.clock_sync import ClockSync
from dynolog.sources.host_files import HostFiles
from fakes.doctor import USER, evidence, found, ipc, levels, local_daemon, status
from fakes.proc_tree import ProcTree
from fakes.rpc_daemon import running_server
from fakes.services import FakeServices

HERE = HostFiles()


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


@pytest.fixture
def silent(tree: ProcTree) -> Evidence:
    """No daemon answers."""
    return evidence(tree.host, status=None, daemon=None, unreachable="no daemon answers on localhost:1778")


def collector(name: str, state: CollectorState, error: str = "") -> CollectorStatus:
    return CollectorStatus(name=name, state=state, interval_s=60, configured_interval_s=60, error=error)


def test_a_daemon_that_does_not_answer_is_wrong(silent: Evidence) -> None:
    assert found(check_answer, silent) == [("wrong", "no daemon answers on localhost:1778")]


def test_without_a_daemon_the_checks_of_its_word_say_nothing(silent: Evidence) -> None:
    for check in BY_RPC[1:]:
        assert list(check(silent)) == []


def test_another_version_is_said(tree: ProcTree) -> None:
    assert levels(check_answer, evidence(tree.host)) == [Level.OK]
    assert levels(check_answer, evidence(tree.host, status=status(version="0.0.1"))) == [Level.OK, Level.NOTE]


def test_collectors_that_give_nothing_are_weighed(tree: ProcTree) -> None:
    """What was asked for is wrong to miss; what the machine does not have is one remark for all."""
    collectors = (
        collector("cpu", CollectorState.OK),
        collector("edac", CollectorState.UNAVAILABLE, "no memory controller"),
        collector("rapl", CollectorState.UNAVAILABLE, "no counter"),
        collector("pressure", CollectorState.UNAVAILABLE, "off"),
        collector("perf", CollectorState.UNAVAILABLE, "perf: forbidden"),
        collector("disk", CollectorState.FAILING, "it broke"),
        collector("filesystem", CollectorState.STALLED),
    )
    said = found(check_collectors, evidence(tree.host, status=status(collectors=collectors)))
    assert [level for level, _ in said] == ["ok", "wrong", "wrong", "wrong", "note"]
    assert said[4][1] == "nothing to measure here for edac (no memory controller); rapl (no counter)"
    assert said[3][1].startswith("filesystem is stalled: it gives no reason -> what it reads hangs")


@pytest.mark.parametrize(
    ("exporter", "expected"),
    [
        (ExporterStatus(name="log", destination="stderr", state=ExporterState.OK), Level.OK),
        (ExporterStatus(name="log", destination="stderr"), Level.OK),
        (
            ExporterStatus(name="otlp", destination="u", state=ExporterState.RETRYING, error="refused", dropped=7),
            Level.WRONG,
        ),
        (ExporterStatus(name="otlp", destination="u", state=ExporterState.FAILING), Level.WRONG),
        (ExporterStatus(name="otlp", destination="u", state=ExporterState.OK, spool="off: full"), Level.WRONG),
    ],
)
def test_an_exporter_that_delivers_nothing_is_wrong(tree: ProcTree, exporter: ExporterStatus, expected: Level) -> None:
    assert levels(check_exporters, evidence(tree.host, status=status(exporters=(exporter,)))) == [expected]


def test_no_destination_is_a_remark(tree: ProcTree) -> None:
    assert levels(check_exporters, evidence(tree.host)) == [Level.NOTE]


def test_what_the_daemon_misses_is_said_once(tree: ProcTree) -> None:
    missing = (
        "IPC monitor is off, so no process",
        "perf: forbidden",
        "edac: x",
        "no destination is on: y",
        "12 log lines were lost",
    )
    collectors = (collector("edac", CollectorState.UNAVAILABLE, "edac: x"),)
    known = evidence(tree.host, status=status(missing=missing, collectors=collectors))
    assert found(check_missing, known) == [("note", "12 log lines were lost")]


def test_what_went_wrong_lately_is_a_remark_with_its_age(tree: ProcTree) -> None:
    lately = status()
    trouble = RecentTrouble(wall_ns=lately.wall_ns - 61_000_000_000, text="the daemon did not run for 60 s")
    known = evidence(tree.host, status=status(recent=(trouble,)))
    assert found(check_missing, known) == [("note", "1 min 1 s ago: the daemon did not run for 60 s")]


@pytest.mark.parametrize(
    ("offset_ms", "uncertainty_ms", "expected"),
    [(5, 1, Level.OK), (-99, 0, Level.OK), (150, 60, Level.OK), (-2000, 5, Level.WRONG)],
)
def test_clocks_apart_are_wrong_when_that_is_sure(
    tree: ProcTree, offset_ms: int, uncertainty_ms: int, expected: Level
) -> None:
    changes: dict[str, Any] = {
        "clock_offset_ns": offset_ms * 1_000_000,
        "clock_uncertainty_ns": uncertainty_ms * 1_000_000,
    }
    assert levels(check_clock_offset, evidence(tree.host, is_local=False, **changes)) == [expected]
    assert levels(check_clock_offset, evidence(tree.host, **changes)) == [], "this machine has one clock"


def test_the_ipc_off_and_on(tree: ProcTree) -> None:
    assert levels(check_ipc, evidence(tree.host)) == [Level.OK]
    assert levels(check_ipc, evidence(tree.host, status=status(ipc=ipc(enabled=False)))) == [Level.WRONG]


def test_notices_of_the_ipc_but_for_the_queue(tree: ProcTree) -> None:
    known = evidence(tree.host, status=status(ipc=ipc(notices=("a", "set net.unix.max_dgram_qlen to 512"))))
    assert found(check_ipc, known)[1:] == [("note", "a")]


@pytest.mark.parametrize(("addresses", "expected"), [(("@mine",), "wrong"), (("@mine", "/run/d/dynolog"), "ok")])
def test_a_name_that_pytorch_does_not_know(tree: ProcTree, addresses: tuple[str, ...], expected: str) -> None:
    assert found(check_ipc, evidence(tree.host, status=status(ipc=ipc(*addresses))))[-1][0] == expected


def test_somebody_else_holds_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a name of the test's own in the place of `dynolog`, for that one may be in use here."""
    name = f"dynolog-doctor-{os.getpid()}"
    monkeypatch.setattr(ipc_checks, "IPC_NAME", name)
    monkeypatch.setattr(ipc_checks, "ABSTRACT", f"@{name}")
    elsewhere = evidence(HERE, status=status(ipc=ipc("@mine")))
    assert found(check_name, elsewhere) == []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"\0{name}\0")
        ((level, text),) = found(check_name, elsewhere)
        assert level == "wrong"
        assert f"@{name} is held by pid {os.getpid()} (" in text
        assert "which cannot be asked here" in found(check_name, evidence(HERE, status=None))[0][1]
        assert found(check_name, evidence(HERE, status=status(ipc=ipc(f"@{name}")))) == [], "the daemon itself"


def test_the_socket_file_must_be_served_and_its_directory_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KINETO_IPC_SOCKET_DIR", raising=False)
    path = tmp_path / "s" / "dynolog"
    path.parent.mkdir()
    here = os.open(path.parent, os.O_PATH)
    name = f"/proc/self/fd/{here}/dynolog"  # the path of a test's directory may be too long for a socket
    known = evidence(HERE, status=status(ipc=ipc(name)))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as served:
        served.bind(name)
        path.parent.chmod(0o755)
        assert found(check_socket_directory, known)[0][0] == "wrong"
        path.parent.chmod(0o1777)
        assert levels(check_socket_directory, known) == [Level.OK]
    assert "was removed or replaced" in found(check_socket_directory, known)[0][1]
    os.close(here)
    monkeypatch.setenv("KINETO_IPC_SOCKET_DIR", "/elsewhere")
    assert "KINETO_IPC_SOCKET_DIR=/elsewhere is set in this shell" in found(check_socket_directory, known)[-1][1]


def test_a_port_that_another_program_holds(silent: Evidence) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        known = msgspec.structs.replace(silent, host=HERE, target=Target(port=port))
        ((level, text),) = found(check_port, known)
        assert level == "wrong"
        assert f"port {port} is taken by pid {os.getpid()} (" in text
    assert found(check_port, known) == []


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (("[::1]:1778", "127.0.0.1:1778", "/run/dynolog/dynolog.sock"), Level.NOTE),
        (("[::]:1778",), Level.OK),
        (("/run/dynolog/dynolog.sock",), Level.OK),
    ],
)
def test_whether_other_machines_can_ask(tree: ProcTree, addresses: tuple[str, ...], expected: Level) -> None:
    assert levels(check_port, evidence(tree.host, status=status(rpc_addresses=addresses))) == [expected]


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("0::/system.slice/dynolog.service\n", Level.OK),
        ("0::/user.slice/session-1.scope\n", Level.NOTE),
        ("0::/a/ssh.service\n", Level.NOTE),
    ],
)
def test_who_would_restart_it(tree: ProcTree, cgroup: str, expected: Level) -> None:
    daemon = msgspec.structs.replace(local_daemon(), cgroup=cgroup)
    assert levels(check_service, evidence(tree.host, daemon=daemon)) == [], "without systemd nobody can"
    (tree.root / "run/systemd/system").mkdir(parents=True)
    assert levels(check_service, evidence(tree.host, daemon=daemon)) == [expected]


def test_the_flags_are_checked_as_the_daemon_would(tree: ProcTree, tmp_path: Path) -> None:
    good = msgspec.structs.replace(local_daemon(), arguments=("--port=0", f"--flagfile={tmp_path}/none"))
    bad = msgspec.structs.replace(local_daemon(), arguments=("--nosuchflag=1",))
    me = msgspec.structs.replace(USER, uid=0)
    assert levels(check_flags, evidence(tree.host, daemon=good, own=me)) == [Level.WRONG], "a flag file that is gone"
    (tmp_path / "none").write_text("--enable_ipc_monitor\n")
    assert levels(check_flags, evidence(tree.host, daemon=good, own=me)) == [Level.OK]
    ((level, text),) = found(check_flags, evidence(tree.host, daemon=bad, own=me))
    assert level == "wrong"
    assert "nosuchflag" in text
    assert levels(check_flags, evidence(tree.host, own=USER)) == [], (
        "another user's daemon may read what this user may not"
    )


def test_without_a_daemon_the_flag_file_that_it_would_read_is_checked(silent: Evidence, tree: ProcTree) -> None:
    assert levels(check_flags, silent) == []
    tree.write("etc/dynolog.gflags", "")
    assert len(levels(check_flags, silent)) == 1


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"LoadState": "not-found", "ActiveState": "inactive"}, ""),
        ({"LoadState": "loaded", "ActiveState": "inactive"}, "dynolog.service is installed and not running"),
        ({"LoadState": "loaded", "ActiveState": "active"}, "systemd holds dynolog.service for active, and no daemon"),
        (
            {"LoadState": "loaded", "ActiveState": "failed", "SubState": "failed", "Result": "exit-code"},
            "dynolog.service is failed (failed, exit-code)",
        ),
    ],
)
def test_what_systemd_says_of_a_daemon_that_does_not_answer(properties: dict[str, str], text: str) -> None:
    said = [finding.text for finding in judge_unit(properties)]
    assert "".join(said).startswith(text)
    assert bool(said) == bool(text)


def test_a_daemon_that_listens_on_its_socket_only(
    silent: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service_checks, "default_unix_path", lambda: "")
    monkeypatch.setattr(service_checks, "ROOT_UNIX_PATH", "d.sock")
    assert found(check_default_socket, silent) == []
    with running_server(FakeServices(), rpc_unix_socket="d.sock"):
        assert found(check_default_socket, silent) == [
            ("wrong", "a daemon answers on d.sock, and not on port 1778 -> dyno --unix d.sock doctor")
        ]
        assert found(check_default_socket, evidence(HERE)) == []


def test_the_clock_by_the_kernels_word(tree: ProcTree) -> None:
    assert judge_clock(ClockSync(True, 1500)).level is Level.OK
    assert judge_clock(ClockSync(False, 16_000_000)).level is Level.NOTE
    assert levels(check_clock, evidence(tree.host, is_local=False)) == []
    assert len(levels(check_clock, evidence(tree.host))) == 1


def test_the_worst_comes_first_and_nothing_twice(silent: Evidence) -> None:
    order = [finding.level for finding in examine(silent)]
    assert order == sorted(order, key=[Level.WRONG, Level.NOTE, Level.OK].index)
    assert order[0] is Level.WRONG
    assert len(examine(silent)) == len(set(examine(silent)))


def test_of_another_machine_only_the_daemons_word_is_told(tree: ProcTree) -> None:
    findings = examine(evidence(tree.host, is_local=False, daemon=None))
    assert {finding.topic for finding in findings} == {"daemon", "ipc", "exporters", "machine"}


def test_every_check_is_in_a_list() -> None:
    import dynolog.cli.doctor as room  # noqa: PLC0415 - to find its files

    listed = {check.__name__ for check in (*BY_RPC, *BY_MACHINE)}
    (directory,) = room.__path__
    for name in os.listdir(directory):
        if name.endswith("_checks.py"):
            with contextlib.closing(open(os.path.join(directory, name), encoding="utf-8")) as file:
                defined = {line.split("(")[0][4:] for line in file if line.startswith("def check_")}
            assert defined <= listed
