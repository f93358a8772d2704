"""The audit log: who did what and what came of it, on lines that nobody can forge."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dynolog.model.errors import RequestError
from dynolog.model.role import Role
from dynolog.model.trace_request import Caller, Transport
from dynolog.rpc.audit import AuditLog
from dynolog.rpc.messages import (
    BoolReply,
    DcgmProfPause,
    FetchTrace,
    ListProcesses,
    Reload,
    ReloadReply,
    SetKinetOnDemandRequest,
    TraceReply,
)
from dynolog.rpc.services import WrittenTrace
from fakes.services import capture

ADMIN = Caller(
    transport=Transport.REMOTE, address="10.0.0.9 port 4", role=Role.ADMIN, name="certificate ops-1", authenticated=True
)
USER = Caller(transport=Transport.UNIX, uid=1000, address="pid 9 of uid 1000")
TRACED = msgspec.json.encode(
    TraceReply(
        processesMatched=[7, 8],
        eventProfilersTriggered=[],
        activityProfilersTriggered=[7],
        eventProfilersBusy=0,
        activityProfilersBusy=1,
        request_id="r1",
    )
)


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> AuditLog:
    caplog.set_level("INFO")
    return AuditLog()


def entries(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("audit: ")) for line in caplog.messages if line.startswith("audit: ")]


def test_a_trace_says_who_which_processes_and_where_it_goes(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    request = SetKinetOnDemandRequest(
        config="ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_TIME=0", pids=[7, 8], job_id=90210
    )
    audit.done(Role.TRACE, "setKinetOnDemandRequest", USER, request, TRACED)
    assert entries(caplog) == [
        {
            "fn": "setKinetOnDemandRequest",
            "from": "pid 9 of uid 1000",
            "transport": "unix",
            "uid": 1000,
            "role": "trace",
            "outcome": "ok",
            "pids": [7, 8],
            "job": 90210,
            "log_file": "/tmp/t.json",
            "triggered": [7],
            "triggered_count": 1,
            "matched": 2,
            "request": "r1",
        }
    ]


def test_a_fetch_a_pause_a_reload_and_a_refusal(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    trace = WrittenTrace(capture=capture(id="c1", uid=1000), fd=-1, size_bytes=99, sha256="x")
    audit.done(Role.TRACE, "fetchTrace", ADMIN, FetchTrace(capture_id="c1"), trace)
    audit.done(Role.TRACE, "dcgmProfPause", ADMIN, DcgmProfPause(duration_s=5), msgspec.json.encode(BoolReply(True)))
    audit.done(Role.ADMIN, "reload", ADMIN, Reload(), msgspec.json.encode(ReloadReply(changed=("--a=1",))))
    audit.refused(Role.ADMIN, "reload", USER, Reload(), RequestError("forbidden", "it needs the role admin"))
    fetched, paused, reloaded, refused = entries(caplog)
    assert (fetched["proved_by"], fetched["path"], fetched["of_uid"]) == ("certificate ops-1", "/tmp/t_4242.json", 1000)
    assert (paused["outcome"], paused["duration_s"]) == ("ok", 5)
    assert (reloaded["role"], reloaded["changed"]) == ("admin", ["--a=1"])
    assert (refused["outcome"], refused["error"], refused["uid"]) == ("forbidden", "it needs the role admin", 1000)


def test_reading_is_not_audited(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    audit.done(Role.READ, "listProcesses", USER, ListProcesses(), b"{}")
    audit.refused(Role.READ, "listProcesses", USER, ListProcesses(), RequestError("forbidden", "no"))
    assert entries(caplog) == []


def test_what_changed_nothing_is_written_once_a_minute_for_a_caller(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = msgspec.json.encode(BoolReply(False))
    for number in range(5):
        other = msgspec.structs.replace(USER, address=f"pid {number} of uid 1000")
        audit.done(Role.TRACE, "dcgmProfResume", other, DcgmProfPause(), nothing)
    audit.done(Role.TRACE, "dcgmProfResume", ADMIN, DcgmProfPause(), nothing)
    assert [entry.get("uid") for entry in entries(caplog)] == [1000, None]
    for _ in range(3):
        audit.done(Role.TRACE, "setKinetOnDemandRequest", USER, SetKinetOnDemandRequest(config=""), TRACED)
    assert len(entries(caplog)) == 5


def test_the_files_that_win_over_the_config_are_named(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    """A config with a harmless path and another one beside it must not look harmless."""
    request = SetKinetOnDemandRequest(config="ACTIVITIES_LOG_FILE=/tmp/t.json", log_files={7: "/etc/cron.d/t.json"})
    reply = msgspec.structs.replace(
        msgspec.json.decode(TRACED, type=TraceReply), captures=(capture(7, path="/etc/cron.d/t_7.json"),)
    )
    audit.done(Role.TRACE, "setKinetOnDemandRequest", ADMIN, request, msgspec.json.encode(reply))
    assert entries(caplog)[0]["log_files"] == ["/etc/cron.d/t_7.json"]


def test_refusals_of_many_hosts_are_bounded_and_what_was_done_is_not(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(200):
        caller = msgspec.structs.replace(ADMIN, role=Role.NONE, name="", address=f"10.0.0.{number} port 4")
        audit.refused(Role.ADMIN, "reload", caller, Reload(), RequestError("unauthenticated", "sign it"))
    assert len(entries(caplog)) == 120
    audit.done(Role.TRACE, "setKinetOnDemandRequest", USER, SetKinetOnDemandRequest(config=""), TRACED)
    assert entries(caplog)[-1]["outcome"] == "ok"


@hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=80))
def test_no_text_from_outside_ends_the_line_or_steers_a_terminal(
    audit: AuditLog, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.clear()
    caller = msgspec.structs.replace(ADMIN, name=f"certificate {text}", address=text)
    request = SetKinetOnDemandRequest(config=f"ACTIVITIES_LOG_FILE={text}", job=text)
    audit.done(Role.TRACE, "setKinetOnDemandRequest", caller, request, TRACED)
    (line,) = caplog.messages
    assert line.isascii()
    assert line.isprintable()
    assert entries(caplog)[0]["proved_by"] == f"certificate {text}"


def test_no_secret_is_written(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    """A config is not copied: it may hold what its writer would not want in a log."""
    request = SetKinetOnDemandRequest(config="ACTIVITIES_LOG_FILE=/t\nSECRET=hunter2")
    audit.done(Role.TRACE, "setKinetOnDemandRequest", ADMIN, request, TRACED)
    assert "hunter2" not in caplog.text
