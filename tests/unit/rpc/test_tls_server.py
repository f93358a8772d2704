"""TLS of a live server on this machine, with clients that behave in every way."""

import contextlib
import functools
import hashlib
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.model.trace_request import Transport
from dynolog.rpc import handshake, server_tls
from dynolog.rpc.check import check_rpc
from dynolog.rpc.client import Target, call
from dynolog.rpc.client_tls import ClientTls
from dynolog.rpc.fetch_client import fetch_to
from dynolog.rpc.flags import FLAGS
from dynolog.rpc.framing import LENGTH, frame
from dynolog.rpc.handshake import Handshakes
from dynolog.rpc.messages import (
    CatalogueReply,
    GetStatus,
    ListMetrics,
    SetKinetOnDemandRequest,
    StatusReply,
    TraceReply,
)
from dynolog.rpc.server_tls import ServerTls, make_context
from dynolog.rpc.tls_files import TlsFiles
from fakes.certificates import Authority, plain_context
from fakes.rpc_daemon import RpcThread, running_server
from fakes.services import FakeServices

STATUS = b'{"fn":"getStatus"}'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def fakes() -> FakeServices:
    return FakeServices()


@pytest.fixture(scope="module")
def ops(authority: Authority) -> ClientTls:
    return authority.client("ops-1")


@pytest.fixture
def daemon(fakes: FakeServices, authority: Authority) -> Iterator[RpcThread]:
    with running_server(fakes, **authority.flags()) as thread:
        yield thread


def target(daemon: RpcThread, tls: ClientTls | None) -> Target:
    return Target(hostname="127.0.0.1", port=daemon.server.port, tls=tls, timeout_s=30)


def status(daemon: RpcThread, tls: ClientTls) -> int:
    return call(target(daemon, tls), GetStatus(), StatusReply).status


def connect(daemon: RpcThread) -> socket.socket:
    return socket.create_connection(("127.0.0.1", daemon.server.port), timeout=30)


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def handshakes(daemon: RpcThread) -> Handshakes:
    table = daemon.server._handshakes
    assert table is not None
    return table


def read_all(sock: socket.socket) -> bytes:
    pieces = []
    with contextlib.suppress(OSError):
        while piece := sock.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def test_a_request_over_tls_is_answered_and_the_session_ends_properly(
    daemon: RpcThread, authority: Authority, ops: ClientTls
) -> None:
    """The server's close_notify comes, so a cut answer can be told from a whole one."""
    with (
        connect(daemon) as raw,
        plain_context(authority, ops).wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=False) as sock,
    ):
        assert sock.version() == "TLSv1.3"
        sock.sendall(frame(STATUS))
        assert read_all(sock) == frame(b'{"status":1}')


def test_the_names_of_the_certificate_reach_the_services(
    daemon: RpcThread, fakes: FakeServices, ops: ClientTls
) -> None:
    call(target(daemon, ops), SetKinetOnDemandRequest(config=""), TraceReply)
    (caller,) = [caller for _, caller in fakes.traces.requests]
    assert (caller.transport, caller.uid, caller.name) == (Transport.LOOPBACK, os.geteuid(), "certificate ops-1")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_serve(daemon: RpcThread, authority: Authority, version: ssl.TLSVersion) -> None:
    context = plain_context(authority, authority.client(f"client-{version.value}"))
    context.maximum_version = context.minimum_version = version
    with connect(daemon) as raw, context.wrap_socket(raw, server_hostname="localhost") as sock:
        sock.sendall(frame(STATUS))
        assert read_all(sock) == frame(b'{"status":1}')


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_older_versions_are_refused_with_the_reason_in_the_log(
    daemon: RpcThread, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    context = plain_context(authority, authority.client("old"))
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with connect(daemon) as raw, pytest.raises(ssl.SSLError):
        context.wrap_socket(raw, server_hostname="localhost")
    eventually(lambda: "it speaks no TLS from 1.2 on" in caplog.text)


def test_a_trace_is_streamed_over_tls(daemon: RpcThread, fakes: FakeServices, tmp_path: Path, ops: ClientTls) -> None:
    """Many times what the kernel takes at once, so sends are interrupted in every place."""
    content = os.urandom(1 << 16) * 400
    (tmp_path / "trace.json").write_bytes(content)
    fakes.traces.files["c1"] = str(tmp_path / "trace.json")
    with open(tmp_path / "got", "wb") as sink:
        reply = fetch_to(target(daemon, ops), "c1", sink)
    assert reply.sha256 == hashlib.sha256(content).hexdigest()
    assert (tmp_path / "got").read_bytes() == content


def test_a_large_request_and_a_large_reply(daemon: RpcThread, fakes: FakeServices, ops: ClientTls) -> None:
    request = SetKinetOnDemandRequest(config="A" * 900_000)
    call(target(daemon, ops), request, TraceReply)
    assert fakes.traces.requests[0][0].config == request.config
    assert len(call(target(daemon, ops), ListMetrics(), CatalogueReply).metrics) == 2


def test_a_client_that_reads_slowly_gets_a_whole_reply(
    daemon: RpcThread, fakes: FakeServices, authority: Authority, ops: ClientTls
) -> None:
    """A reply larger than all buffers together waits in the server for the client, not on its thread."""
    fakes.metrics.records = tuple(
        type(fakes.metrics.records[0])(
            wall_ns=1, source="kernel", values={f"cpu_u.{n}": float(n) for n in range(n0, n0 + 1000)}
        )
        for n0 in range(0, 300_000, 1000)
    )
    with connect(daemon) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        with plain_context(authority, ops).wrap_socket(raw, server_hostname="localhost") as sock:
            sock.sendall(frame(b'{"fn":"getMetrics"}'))
            assert status(daemon, ops) == 1
            reply = read_all(sock)
    assert LENGTH.unpack(reply[:4])[0] == len(reply) - 4 > 4_000_000
    assert len(json.loads(reply[4:])["records"]) == 300


def test_a_plain_client_is_told_what_to_do(daemon: RpcThread, caplog: pytest.LogCaptureFixture) -> None:
    for body in (STATUS, b"x" * 500_000):
        with connect(daemon) as sock:
            sock.sendall(frame(body))
            reply = json.loads(read_all(sock)[4:])
        assert reply["code"] == "tls_required"
        assert "--tls-ca" in reply["error"]
    assert caplog.text.count("refused a request without TLS") == 1


def test_a_client_without_a_certificate_is_refused_once_in_the_log(
    daemon: RpcThread, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with pytest.raises(Exception, match="asks for a client certificate"):
            status(daemon, authority.client())
    eventually(lambda: handshakes(daemon).failed == 3)
    assert caplog.text.count("it shows no certificate") == 1


def test_without_an_authority_no_certificate_is_asked_for(fakes: FakeServices, authority: Authority) -> None:
    with running_server(fakes, **authority.flags(mutual=False)) as daemon:
        assert status(daemon, authority.client()) == 1
        call(target(daemon, authority.client()), SetKinetOnDemandRequest(config=""), TraceReply)
    assert fakes.traces.requests[0][1].name == ""


def test_the_unix_socket_stays_plain(fakes: FakeServices, authority: Authority, tmp_path: Path, ops: ClientTls) -> None:
    path = str(tmp_path / "rpc.sock")
    with running_server(fakes, rpc_unix_socket=path, **authority.flags()):
        assert call(Target(unix=path, tls=ops), GetStatus(), StatusReply).status == 1


# --- files ---------------------------------------------------------------------------------------------------------


def served(daemon: RpcThread, authority: Authority, ops: ClientTls) -> bytes | None:
    with connect(daemon) as raw, plain_context(authority, ops).wrap_socket(raw, server_hostname="localhost") as sock:
        sock.sendall(frame(STATUS))
        read_all(sock)
        return sock.getpeercert(binary_form=True)


def test_a_new_certificate_is_used_without_a_restart_and_a_bad_one_is_not(
    fakes: FakeServices, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    ops = authority.client("ops-1")
    with running_server(fakes, **authority.flags()) as daemon:
        first = served(daemon, authority, ops)
        authority.issue("server")
        eventually(lambda: served(daemon, authority, ops) != first)
        second = served(daemon, authority, ops)
        (tmp_path / "server.crt").write_text("no certificate")
        eventually(lambda: served(daemon, authority, ops) == second and daemon.server.notices)
        assert "the certificate from before stays in use" in daemon.server.notices[0]
        for _ in range(3):
            served(daemon, authority, ops)
        assert caplog.text.count("stays in use") == 1
        (tmp_path / "server.crt").unlink()
        eventually(lambda: served(daemon, authority, ops) == second and "No such file" in daemon.server.notices[0])
        authority.issue("server")
        eventually(lambda: served(daemon, authority, ops) != second and not daemon.server.notices)


def test_what_could_not_be_read_for_a_moment_is_tried_again(
    fakes: FakeServices, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the files changes after a daemon without a descriptor to spare could not open them."""
    monkeypatch.setattr(ServerTls, "AGAIN_S", 0.01)
    authority = Authority(tmp_path)
    ops = authority.client("ops-1")
    tries = 0

    def make(files: TlsFiles) -> ssl.SSLContext:
        nonlocal tries
        tries += 1
        if tries <= 3:
            raise FlagError(f"TLS file {files.certificate} cannot be read: Too many open files")
        return make_context(files)

    with running_server(fakes, **authority.flags()) as daemon:
        first = served(daemon, authority, ops)
        monkeypatch.setattr(server_tls, "make_context", make)
        authority.issue("server")
        eventually(lambda: served(daemon, authority, ops) != first)
        assert not daemon.server.notices
    assert tries == 4
    assert caplog.text.count("Too many open files") == 1


def test_a_key_that_everybody_can_read_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = Authority(tmp_path)
    files = TlsFiles(certificate=authority.flags()["rpc_tls_cert"], key=authority.flags()["rpc_tls_key"])
    Path(files.key).chmod(0o640)
    make_context(files)
    assert not caplog.messages
    Path(files.key).chmod(0o644)
    make_context(files)
    assert f"chmod o-r {files.key}" in caplog.text


def test_a_connection_goes_on_while_certificates_change(fakes: FakeServices, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ops = authority.client("ops-1")
    with (
        running_server(fakes, **authority.flags()) as daemon,
        connect(daemon) as raw,
        plain_context(authority, ops).wrap_socket(raw, server_hostname="localhost") as old,
    ):
        first = served(daemon, authority, ops)
        authority.issue("server")
        eventually(lambda: served(daemon, authority, ops) != first)
        old.sendall(frame(STATUS))
        assert read_all(old) == frame(b'{"status":1}')


def test_files_that_cannot_be_used_end_the_start_with_what_to_do(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    good = authority.flags()
    empty = tmp_path / "empty"
    empty.write_text("")
    locked = tmp_path / "locked.key"
    locked.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n")
    for change, sentence in (
        ({"rpc_tls_cert": str(tmp_path / "none.crt")}, "none.crt cannot be read: No such file"),
        ({"rpc_tls_key": other.flags()["rpc_tls_key"]}, "is not the key of the certificate"),
        ({"rpc_tls_cert": str(empty)}, "must be PEM"),
        ({"rpc_tls_ca": str(empty)}, "must be PEM"),
        ({"rpc_tls_key": ""}, "--rpc_tls_cert needs --rpc_tls_key"),
        ({"rpc_tls_cert": "", "rpc_tls_key": ""}, "--rpc_tls_ca needs the daemon's own certificate"),
    ):
        with pytest.raises(FlagError, match=sentence):
            check_rpc(Settings(FLAGS, good | change))


# --- those who misbehave -------------------------------------------------------------------------------------------


def test_a_hundred_silent_clients_hold_nobody_up_and_are_sent_away(
    fakes: FakeServices, authority: Authority, ops: ClientTls
) -> None:
    with (
        contextlib.ExitStack() as stack,
        running_server(fakes, rpc_request_timeout_s=4.0, **authority.flags()) as daemon,
    ):
        silent = [stack.enter_context(connect(daemon)) for _ in range(100)]
        half = [stack.enter_context(connect(daemon)) for _ in range(20)]
        for sock in half:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert status(daemon, ops) == 1
        eventually(lambda: not len(handshakes(daemon)))
        assert all(read_all(sock) == b"" for sock in silent)


def test_there_is_room_for_a_new_client_however_many_are_silent(
    fakes: FakeServices, authority: Authority, ops: ClientTls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handshakes, "MOST", 8)
    monkeypatch.setattr(Handshakes, "SLOW_S", 0.05)
    with contextlib.ExitStack() as stack, running_server(fakes, **authority.flags()) as daemon:
        for _ in range(24):
            stack.enter_context(connect(daemon))
        assert status(daemon, ops) == 1
        assert len(handshakes(daemon)) <= 8


def test_between_two_steps_of_handshakes_the_loop_serves_others(
    daemon: RpcThread, authority: Authority, ops: ClientTls
) -> None:
    """What keeps trainers answered: one step of one handshake in a round of the loop, whatever else is ready."""
    steps_of_rounds: set[int] = set()
    counted = [0]

    def count_a_round() -> None:
        steps_of_rounds.add(handshakes(daemon).steps - counted[0])
        counted[0] = handshakes(daemon).steps
        if handshakes(daemon).done < 20:
            daemon.loop.call_soon(count_a_round)

    daemon.run(count_a_round)
    context = plain_context(authority, ops)
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(daemon)) for _ in range(20)]
        streams = []
        for sock in socks:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            stream = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            with pytest.raises(ssl.SSLWantReadError):
                stream.do_handshake()
            streams.append((sock, incoming, outgoing, stream))
        for sock, _, outgoing, _ in streams:
            sock.sendall(outgoing.read())
        for sock, incoming, outgoing, stream in streams:
            done = False
            while not done:
                incoming.write(sock.recv(1 << 16))
                with contextlib.suppress(ssl.SSLWantReadError):
                    stream.do_handshake()
                    done = True
            sock.sendall(outgoing.read())
        eventually(lambda: handshakes(daemon).done == 20)
    assert steps_of_rounds == {0, 1}
    assert handshakes(daemon).steps >= 20


def are_under_way(daemon: RpcThread, count: int) -> bool:
    return len(handshakes(daemon)) == count


def test_the_memory_of_a_crowd_is_given_back_when_it_has_gone(
    fakes: FakeServices, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for a crowd, and never for a few clients."""
    given: list[int] = []
    monkeypatch.setattr(handshake, "give_memory_back", lambda: given.append(1))
    monkeypatch.setattr(Handshakes, "CROWD", 8)
    monkeypatch.setattr(Handshakes, "CALM_S", 0.02)
    with running_server(fakes, **authority.flags()) as daemon:
        for count, times in ((5, 0), (12, 1)):
            with contextlib.ExitStack() as stack:
                for _ in range(count):
                    stack.enter_context(connect(daemon))
                eventually(functools.partial(are_under_way, daemon, count))
                assert given == []
            eventually(lambda: len(handshakes(daemon)) == 0)
            if times:
                eventually(lambda: given == [1])


def client_hello(authority: Authority, ops: ClientTls) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    stream = plain_context(authority, ops).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        stream.do_handshake()
    return outgoing.read()


def test_a_handshake_cut_anywhere_harms_nobody(daemon: RpcThread, authority: Authority, ops: ClientTls) -> None:
    hello = client_hello(authority, ops)
    for length in range(0, len(hello) + 1, 7):
        with connect(daemon) as sock:
            sock.sendall(hello[:length])
    eventually(lambda: not len(handshakes(daemon)))
    assert status(daemon, ops) == 1
    assert daemon.server.methods.internal_errors == 0


RECORD = st.builds(
    lambda kind, version, length, body: bytes([kind, 3, version]) + length.to_bytes(2, "big") + body,
    st.integers(20, 24),
    st.integers(0, 4),
    st.integers(0, 65535),
    st.binary(max_size=300),
)


@hypothesis_settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.one_of(st.binary(max_size=600), RECORD, st.lists(RECORD, max_size=4).map(b"".join)),
    after=st.binary(max_size=200),
)
@example(before=b"\x16\x03\x01\xff\xff" + bytes(70_000), after=b"")
@example(before=b"\x16\x03", after=b"\x16")
def test_no_bytes_stop_the_server(
    daemon: RpcThread, authority: Authority, ops: ClientTls, before: bytes, after: bytes
) -> None:
    """Whatever comes instead of a handshake, after its first message, or instead of a request, the next client is served."""
    hello = client_hello(authority, ops)
    for data in (before, hello + after):
        with connect(daemon) as sock, contextlib.suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            read_all(sock)
    with (
        connect(daemon) as raw,
        plain_context(authority, ops).wrap_socket(raw, server_hostname="localhost") as sock,
        contextlib.suppress(OSError),
    ):
        sock.sendall(before + after)
        sock.shutdown(socket.SHUT_WR)
    assert status(daemon, ops) == 1
    assert daemon.server.methods.internal_errors == 0


def test_a_client_that_leaves_during_a_stream_leaves_nothing(
    daemon: RpcThread, fakes: FakeServices, authority: Authority, ops: ClientTls, tmp_path: Path
) -> None:
    (tmp_path / "trace.json").write_bytes(bytes(20 << 20))
    fakes.traces.files["c1"] = str(tmp_path / "trace.json")
    with connect(daemon) as raw, plain_context(authority, ops).wrap_socket(raw, server_hostname="localhost") as sock:
        sock.sendall(frame(b'{"fn":"fetchTrace","capture_id":"c1"}'))
        assert sock.recv(100)
    eventually(lambda: daemon.run(len, daemon.server.connections) == 0 and daemon.server.connections.fetches == 0)
    assert not _files_open(tmp_path)


def _files_open(directory: Path) -> list[str]:
    found: list[Any] = []
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{entry}"))
    return [path for path in found if path.startswith(str(directory))]


def test_a_stop_ends_handshakes_that_are_under_way(
    fakes: FakeServices, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.ExitStack() as stack:
        with running_server(fakes, **authority.flags()) as daemon:
            silent = [stack.enter_context(connect(daemon)) for _ in range(5)]
            eventually(lambda: len(handshakes(daemon)) == 5)
        assert all(read_all(sock) == b"" for sock in silent)
    assert "destroyed" not in caplog.text
