"""The client against a live server, and against servers of other kinds."""

import hashlib
import io
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import DynologError, RequestError
from dynolog.model.trace_request import TraceOutcome
from dynolog.rpc.channel import MAX_REPLY_BYTES
from dynolog.rpc.client import CannotReach, NoAnswer, Target, call, call_raw, decode
from dynolog.rpc.fetch_client import Fetch, FetchedFileDiffers, FetchInterrupted, fetch_to
from dynolog.rpc.framing import LENGTH, frame
from dynolog.rpc.messages import (
    BoolReply,
    CatalogueReply,
    DcgmProfPause,
    GetStatus,
    GetVersion,
    ListMetrics,
    ListProcesses,
    ProcessesReply,
    SetKinetOnDemandRequest,
    StatusReply,
    TraceProgressReply,
    TraceReply,
    VersionReply,
    WaitTrace,
)
from dynolog.rpc.token import TokenFileError
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices, capture, trainer

SECRET = "correct horse battery staple"


@pytest.fixture
def fakes() -> FakeServices:
    return FakeServices()


@pytest.fixture
def target(fakes: FakeServices) -> Iterator[Target]:
    with running_daemon(fakes) as port:
        yield Target(port=port)


@contextmanager
def answering(reply: Callable[[socket.socket], None]) -> Iterator[Target]:
    """A server that takes one request frame per connection and then does what the test says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                with sock:
                    sock.recv(1 << 16)
                    reply(sock)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Target(hostname="127.0.0.1", port=listener.getsockname()[1], timeout_s=5)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def sending(data: bytes) -> Callable[[socket.socket], None]:
    return lambda sock: sock.sendall(data)


def test_typed_calls(target: Target, fakes: FakeServices) -> None:
    fakes.traces.registered = (trainer(5),)
    fakes.traces.outcome = TraceOutcome(matched=(5,), triggered=(5,), request_id="r1")
    fakes.traces.publish(capture())
    assert call(target, GetStatus(), StatusReply).status == 1
    assert call(target, GetStatus(verbose=True), StatusReply).daemon == fakes.status.daemon
    assert call(target, GetVersion(), VersionReply).version
    assert call(target, ListProcesses(), ProcessesReply).trainers == fakes.traces.registered
    assert call(target, SetKinetOnDemandRequest(config=""), TraceReply).activityProfilersTriggered == [5]
    assert call(target, WaitTrace(request_id="r1"), TraceProgressReply).requests[0].request_id == "r1"
    assert call(target, DcgmProfPause(), BoolReply).status is False
    assert len(call(target, ListMetrics(), CatalogueReply).metrics) == 2


def test_the_raw_reply_is_what_the_original_command_prints(target: Target) -> None:
    reply = call_raw(target, {"fn": "getStatus"})
    assert (reply.length, reply.text) == (12, '{"status":1}')
    assert call_raw(target, b'{"fn":"getStatus"}') == reply


def test_a_failed_reply_is_an_error_with_its_code(target: Target) -> None:
    with pytest.raises(RequestError, match="no request r9") as caught:
        call(target, WaitTrace(request_id="r9"), TraceProgressReply)
    assert caught.value.code == "not_found"
    with pytest.raises(RequestError):
        call(target, WaitTrace(request_id="r9"), dict)


def test_the_word_failed_inside_a_good_reply_is_no_failure(target: Target, fakes: FakeServices) -> None:
    fakes.traces.registered = (trainer(5, name="failed"),)
    assert call(target, ListProcesses(), ProcessesReply).trainers[0].name == "failed"


def test_a_failed_reply_of_the_original_has_its_reason_in_status() -> None:
    with (
        answering(sending(frame(b'{"status":"failed with exception = x"}'))) as target,
        pytest.raises(RequestError, match="failed with exception = x"),
    ):
        call(target, SetKinetOnDemandRequest(config=""), TraceReply)


def test_a_wait_has_its_own_time_beside_the_timeout(target: Target, fakes: FakeServices) -> None:
    fakes.traces.publish(capture())
    patient = Target(port=target.port, timeout_s=0.5)
    request = WaitTrace(request_id="r1", seen_version=0, timeout_s=0.7)
    assert call(patient, request, TraceProgressReply).requests[0].version == 0


def test_a_close_without_a_reply_is_an_original_that_does_not_know() -> None:
    with answering(lambda _: None) as target, pytest.raises(NoAnswer, match="original"):
        call(target, ListProcesses(), ProcessesReply)


def test_a_reply_cut_short_is_no_reply() -> None:
    with answering(sending(frame(b'{"status":1}')[:9])) as target, pytest.raises(NoAnswer, match="middle"):
        call(target, GetStatus(), StatusReply)


def test_a_reply_in_single_bytes_is_put_together() -> None:
    """A19."""

    def drip(sock: socket.socket) -> None:
        for byte in frame(b'{"status":1}'):
            sock.sendall(bytes([byte]))
            time.sleep(0.001)

    with answering(drip) as target:
        assert call(target, GetStatus(), StatusReply).status == 1


def test_a_drip_does_not_extend_the_timeout() -> None:
    def drip(sock: socket.socket) -> None:
        try:
            for byte in frame(b'{"status":1}' + b" " * 1000):
                sock.sendall(bytes([byte]))
                time.sleep(0.02)
        except OSError:
            return

    with answering(drip) as target, pytest.raises(CannotReach, match=r"within 0\.2 s"):
        call(Target(hostname=target.hostname, port=target.port, timeout_s=0.2), GetStatus(), StatusReply)


@pytest.mark.parametrize("length", [-1, MAX_REPLY_BYTES + 1, 0x50545448])
def test_another_protocol_is_recognised(length: int) -> None:
    with (
        answering(sending(LENGTH.pack(length))) as target,
        pytest.raises(CannotReach, match="check --hostname and --port"),
    ):
        call(target, GetStatus(), StatusReply)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "is an SSH server, not a dynolog: check --hostname and --port"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is an HTTP server, .* not a dynolog: check --hostname and --port"),
        (b"220 mail ESMTP\r\n", "is a mail or FTP server"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS: give --tls-ca FILE"),
        (b"+PONG\r\n", "answers in another protocol than a dynolog: check --hostname and --port"),
    ],
)
def test_what_listens_there_instead_is_said(sent: bytes, words: str) -> None:
    with answering(sending(sent)) as target, pytest.raises(CannotReach, match=words):
        call(target, GetStatus(), StatusReply)


def test_a_reply_as_long_as_an_alert_of_tls_looks_is_read() -> None:
    """0x10315 bytes: its length has the first bytes of an alert."""
    body = b'{"status":1}' + b" " * (0x10315 - 12)
    with answering(sending(frame(body))) as target:
        assert call(target, GetStatus(), StatusReply).status == 1
    with answering(sending(frame(body)[:-1])) as target, pytest.raises(NoAnswer, match="66328 bytes of it came"):
        call(target, GetStatus(), StatusReply)


def test_a_reset_says_what_to_check() -> None:
    def reset(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with (
        answering(reset) as target,
        pytest.raises(NoAnswer, match=r"\(connection reset by peer\): .* check --hostname and --port"),
    ):
        call(target, GetStatus(), StatusReply)


@given(data=st.binary(max_size=60))
def test_any_reply_is_typed_or_an_error_of_ours(data: bytes) -> None:
    try:
        assert isinstance(decode(Target(), data, StatusReply), StatusReply)
    except DynologError:
        return


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_nobody_there_says_what_to_start(tmp_path: Path) -> None:
    with pytest.raises(CannotReach, match=r"no daemon answers on localhost:\d+ .*`dynolog --enable_ipc_monitor`"):
        call(Target(port=free_port()), GetStatus(), StatusReply)
    with pytest.raises(CannotReach, match=r"no daemon answers on .*none\.sock"):
        call(Target(unix=str(tmp_path / "none.sock")), GetStatus(), StatusReply)


def test_a_socket_that_is_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "dynolog.sock").touch()
    with pytest.raises(CannotReach, match=f"or try --unix {tmp_path}/dynolog.sock, which is there"):
        call(Target(port=free_port()), GetStatus(), StatusReply)


@pytest.mark.parametrize("hostname", ["", "no.such.host.invalid", "a" * 70 + ".example", "x..y", "\x00"])
def test_a_name_that_is_none_says_so(hostname: str) -> None:
    with pytest.raises(CannotReach):
        call(Target(hostname=hostname, port=free_port()), GetStatus(), StatusReply)


def test_localhost_is_both_loopbacks(fakes: FakeServices) -> None:
    with running_daemon(fakes, rpc_bind_address="127.0.0.1") as port:
        for hostname in ("localhost", "127.0.0.1"):
            assert call(Target(hostname=hostname, port=port), GetStatus(), StatusReply).status == 1
        with pytest.raises(CannotReach):
            call(Target(hostname="::1", port=port), GetStatus(), StatusReply)


def test_the_unix_socket(fakes: FakeServices, tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    with running_daemon(fakes, rpc_unix_socket=path):
        assert call(Target(unix=path), GetStatus(), StatusReply).status == 1


def test_a_large_reply_comes_whole(target: Target, fakes: FakeServices) -> None:
    fakes.traces.registered = tuple(trainer(pid, command="x" * 400) for pid in range(10_000))
    assert len(call(target, ListProcesses(), ProcessesReply).trainers) == 10_000


def write_token(path: Path, token: str) -> str:
    path.write_text(token)
    path.chmod(0o600)
    return str(path)


def test_a_token_makes_the_caller_trusted(fakes: FakeServices, tmp_path: Path) -> None:
    token_file = write_token(tmp_path / "token", SECRET)
    with running_daemon(fakes, rpc_token_file=token_file) as port:
        signed = Target(port=port, token_file=token_file)
        call(signed, SetKinetOnDemandRequest(config="A=é\n"), TraceReply)
        assert call(signed, ListProcesses(), ProcessesReply).trainers == ()
        assert call(signed, GetStatus(verbose=True), StatusReply).daemon is not None
        call(Target(port=port), SetKinetOnDemandRequest(config=""), TraceReply)
        wrong = Target(port=port, token_file=write_token(tmp_path / "wrong", "another secret of length"))
        with pytest.raises(RequestError, match="signature is wrong"):
            call(wrong, ListProcesses(), ProcessesReply)
    assert [(request.config, caller.authenticated) for request, caller in fakes.traces.requests] == [
        ("A=é\n", True),
        ("", False),
    ]


def test_a_token_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(SECRET)
    path.chmod(0o644)
    with pytest.raises(TokenFileError, match="chmod 600"):
        call(Target(token_file=str(path), port=free_port()), ListProcesses(), ProcessesReply)


# --- fetching --------------------------------------------------------------------------------------------------------


@pytest.fixture
def content(fakes: FakeServices, tmp_path: Path) -> bytes:
    data = os.urandom(1 << 20) + b"end"
    (tmp_path / "t.json").write_bytes(data)
    fakes.traces.files["c1"] = str(tmp_path / "t.json")
    return data


def test_a_file_is_fetched_whole_and_in_part(target: Target, content: bytes) -> None:
    with Fetch(target, "c1", 1000) as fetch:
        assert (fetch.reply.name, fetch.reply.size_bytes) == ("t.json", len(content))
        assert b"".join(fetch) == content[1000:]
    sink = io.BytesIO()
    assert fetch_to(target, "c1", sink).sha256 == hashlib.sha256(content).hexdigest()
    assert sink.getvalue() == content
    with pytest.raises(RequestError, match="no capture c9"):
        Fetch(target, "c9")


def stream(offset: int, data: bytes, whole: bytes, ends: bool) -> bytes:
    sha256 = hashlib.sha256(whole).hexdigest()
    facts = f'{{"capture_id":"c1","name":"t","size_bytes":{len(whole)},"sha256":"{sha256}","offset":{offset},"chunk_bytes":4}}'
    chunks = b"".join(frame(data[start : start + 4]) for start in range(0, len(data), 4))
    return frame(facts.encode()) + chunks + (LENGTH.pack(0) if ends else b"")


def test_a_daemon_that_sends_more_than_it_announced_fills_no_disk() -> None:
    whole = b"0123456789"
    with answering(lambda sock: sock.sendall(stream(0, whole * 100, whole, ends=True))) as target:
        sink = io.BytesIO()
        with pytest.raises(FetchInterrupted):
            fetch_to(target, "c1", sink, tries=1)
    assert sink.getvalue() == b"01234567"


def test_an_interrupted_fetch_goes_on_where_it_stopped() -> None:
    whole = b"0123456789abcdef"
    answers = iter(
        [
            stream(0, whole[:8], whole, ends=False),
            stream(8, whole[8:12], whole, ends=True),
            stream(12, whole[12:], whole, ends=True),
        ]
    )
    with answering(lambda sock: sock.sendall(next(answers))) as target:
        sink = io.BytesIO()
        fetch_to(target, "c1", sink)
        assert sink.getvalue() == whole


def test_one_that_is_always_interrupted_says_where_to_go_on() -> None:
    with (
        answering(sending(stream(0, b"01234567", b"0123456789", ends=False))) as target,
        pytest.raises(FetchInterrupted) as caught,
    ):
        fetch_to(target, "c1", io.BytesIO(), tries=1)
    assert caught.value.next_offset == 8


def test_a_file_that_is_not_the_written_one_is_refused() -> None:
    changed = stream(0, b"0123456789", b"0123456789", ends=True).replace(b"\n", b"").replace(b"89", b"98")
    with answering(sending(changed)) as target, pytest.raises((FetchedFileDiffers, DynologError)):
        fetch_to(target, "c1", io.BytesIO())
    data = stream(0, b"9876543210", b"0123456789", ends=True)
    with answering(sending(data)) as target, pytest.raises(FetchedFileDiffers):
        fetch_to(target, "c1", io.BytesIO())


def test_the_client_is_light() -> None:
    """What costs start-up time is not loaded for a call."""
    code = (
        "import sys, dynolog.rpc.client, dynolog.rpc.fetch_client\n"
        "heavy = {'asyncio', 'ssl', 'hashlib', 'hmac', 'logging', 'concurrent.futures', 'dataclasses'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
