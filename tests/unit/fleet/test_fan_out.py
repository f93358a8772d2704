"""Asking many daemons: every way in which one can fail, each in its own time."""

import contextlib
import json
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet import host_call
from dynolog.fleet.fan_out import FanOutOptions, ask_all, files_for
from dynolog.fleet.host_call import HostAnswer, Outcome
from dynolog.fleet.targets import FleetTarget
from dynolog.rpc.messages import GetStatus, GetVersion, ListProcesses, ProcessesReply, StatusReply, VersionReply
from fakes.framed_server import frame, framed_server, original_daemon
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices


def at(port: int) -> FleetTarget:
    return FleetTarget(host="127.0.0.1", port=port)


def ask(*ports: int, timeout_s: float = 2.0, request: Any = GetStatus(time=True), **options: Any) -> list[HostAnswer]:  # noqa: B008
    return ask_all([at(port) for port in ports], request, FanOutOptions(timeout_s=timeout_s, **options))


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    """A port whose connections are taken by the kernel and by nobody else."""
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        yield server


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_answers_come_in_the_order_of_the_hosts_with_times_around_the_daemons() -> None:
    with running_daemon(FakeServices()) as ours, framed_server(original_daemon([])) as original:
        first, second, third = ask(ours, original.port, ours)
    assert [answer.target.port for answer in (first, second, third)] == [ours, original.port, ours]
    reply = first.decode(StatusReply)
    assert reply is not None
    assert first.sent_wall_ns <= reply.wall_ns <= first.received_wall_ns
    assert second.decode(StatusReply) == StatusReply(status=1)


def test_a_mute_host_costs_its_own_time_and_nobody_elses() -> None:
    with running_daemon(FakeServices()) as ours, listening() as mute:
        started_s = time.monotonic()
        silent, answered = ask(mute.getsockname()[1], ours, timeout_s=3)
        elapsed_s = time.monotonic() - started_s
    assert silent.outcome is Outcome.SILENT
    assert "did not answer within 3 s" in silent.error
    assert silent.attempts == 1  # only connecting is tried again
    assert answered.answered
    assert answered.elapsed_s < silent.elapsed_s
    assert 3 <= elapsed_s < 20


def test_a_refused_connection_is_tried_once_more() -> None:
    (answer,) = ask(unused_port())
    assert (answer.outcome, answer.attempts, answer.code) == (Outcome.UNREACHABLE, 2, "unreachable")
    assert "no daemon listens there" in answer.error


def test_a_daemon_that_was_just_being_started_is_reached_by_the_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    port = unused_port()
    connect_to = host_call._connect_to
    servers: list[socket.socket] = []

    async def start_after_the_first(address: Any, timeout_s: float) -> socket.socket:
        try:
            return await connect_to(address, timeout_s)
        finally:
            if not servers:
                servers.append(socket.create_server(("127.0.0.1", port)))
                threading.Thread(target=serve_one, args=(servers[0],), daemon=True).start()

    def serve_one(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(frame({"status": 1}))

    monkeypatch.setattr(host_call, "_connect_to", start_after_the_first)
    (answer,) = ask(port)
    servers[0].close()
    assert (answer.outcome, answer.attempts) == (Outcome.ANSWERED, 2)


def test_a_close_without_an_answer_is_an_original_daemon() -> None:
    with framed_server(original_daemon([])) as original:
        (answer,) = ask(original.port, request=ListProcesses())
    assert answer.outcome is Outcome.NO_ANSWER
    assert "original dynolog" in answer.error


@pytest.mark.parametrize(
    ("sent", "outcome", "words"),
    [
        (struct.pack("=i", -1), Outcome.NOT_UNDERSTOOD, "check --hostname and --port"),
        (struct.pack("=i", 0), Outcome.NOT_UNDERSTOOD, "check --hostname and --port"),
        (b"HTTP/1.1 400 Bad Request\r\n", Outcome.NOT_UNDERSTOOD, "it is an HTTP server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", Outcome.NOT_UNDERSTOOD, "it speaks TLS: give --tls-ca"),
        (struct.pack("=i", 100) + b"{", Outcome.NO_ANSWER, "middle of its answer"),
        (b"\x01", Outcome.NO_ANSWER, "middle of its answer"),
        (frame({"status": "failed", "code": "forbidden", "error": "not yours"}), Outcome.REFUSED, "not yours"),
        (frame({"status": "failed: no"}), Outcome.REFUSED, "failed: no"),
    ],
)
def test_what_is_no_answer_is_told_apart(sent: bytes, outcome: Outcome, words: str) -> None:
    with framed_server(lambda _: sent) as server:
        (answer,) = ask(server.port)
    assert (answer.outcome, answer.body) == (outcome, b"")
    assert words in answer.error
    assert answer.code == ("forbidden" if words == "not yours" else "error" if words == "failed: no" else str(outcome))


def test_a_name_that_nobody_has_is_unreachable() -> None:
    (answer,) = ask_all([FleetTarget(host="no-such-host.invalid")], GetVersion(), FanOutOptions(timeout_s=5))
    assert answer.outcome is Outcome.UNREACHABLE


def test_a_name_server_that_hangs_holds_up_neither_others_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hang.wait(20) and [])
    with running_daemon(FakeServices()) as ours:
        started_s = time.monotonic()
        slow, answered = ask_all([FleetTarget(host="slow.example"), at(ours)], GetStatus(), FanOutOptions(timeout_s=3))
    hang.set()
    assert time.monotonic() - started_s < 15
    assert slow.outcome is Outcome.UNREACHABLE
    assert answered.elapsed_s < 3


def test_requests_are_signed_with_the_token_and_status_is_not(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("0123456789abcdef")
    with framed_server(lambda request: frame({"status": "failed", "code": "x", "error": request["fn"]})) as server:
        for request, seen in ((ListProcesses(), "authenticated"), (GetVersion(), "getVersion")):
            (answer,) = ask(server.port, request=request, token_file=str(token))
            assert answer.error == seen


def test_a_request_of_its_own_for_each_host() -> None:
    with framed_server(lambda request: frame({"version": request["fn"]})) as server:
        answers = ask_all(
            [at(server.port)] * 2, lambda target: GetVersion() if target.port else GetStatus(), FanOutOptions(fanout=1)
        )
    assert [answer.decode(VersionReply) for answer in answers] == [VersionReply("getVersion")] * 2


def test_an_answer_in_many_pieces_is_put_together() -> None:
    trainers = json.dumps({"ipc_enabled": True, "trainers": [], "wall_ns": 1, "status": "x" * 500_000})
    with framed_server(lambda _: frame(json.loads(trainers))) as server:
        (answer,) = ask(server.port, request=ListProcesses())
    reply = answer.decode(ProcessesReply)
    assert reply is not None
    assert len(reply.status) == 500_000


@given(st.binary(max_size=64))
def test_any_body_is_a_reply_or_none(body: bytes) -> None:
    answer = HostAnswer(target=at(1), outcome=Outcome.ANSWERED, body=body)
    assert answer.decode(StatusReply) is None or body.lstrip()[:1] == b"{"


def test_the_limit_of_open_files_is_raised_or_kept_to() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    pid = os.fork()
    if pid == 0:  # limits once lowered cannot be raised again
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 1000))
        raised = files_for(512) == 512 and resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 576
        os._exit(0 if raised and files_for(5000) == 1000 - 64 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
