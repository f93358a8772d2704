"""The RPC server in a process of its own, under what a hostile or broken machine does to it."""

import contextlib
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.rpc.client import Target, call
from dynolog.rpc.framing import LENGTH, frame
from dynolog.rpc.messages import GetStatus, SetKinetOnDemandRequest, StatusReply, TraceReply
from fakes.rpc_daemon import running_server
from fakes.services import FakeServices

TESTS = str(Path(__file__).parents[1])
STATUS = frame(b'{"fn":"getStatus"}')
SERVE = """
import asyncio, resource, signal, sys
sys.path.insert(0, {tests!r})
from dynolog.model.flag import Settings
from dynolog.rpc.flags import FLAGS
from dynolog.rpc.server import RpcServer
from fakes.services import FakeServices
if {files}:
    resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
loop = asyncio.new_event_loop()
server = RpcServer(loop, FakeServices().services, Settings(FLAGS, {{"port": 0, "rpc_unix_socket": "none"}} | {flags!r}))
server.start()
print(server.port, *server.addresses, flush=True)
loop.add_signal_handler(signal.SIGTERM, loop.stop)
loop.run_forever()
loop.run_until_complete(server.stop())
print(len(server.connections), server.methods.internal_errors, flush=True)
"""


class ServerProcess:
    """The process: its port, its memory and CPU time, and whether it ends well."""

    def __init__(self, prefix: tuple[str, ...] = (), files: int = 0, **flags: object) -> None:
        code = SERVE.format(tests=TESTS, files=files, flags=flags)
        self.process = subprocess.Popen([*prefix, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        port, *self.addresses = self.process.stdout.readline().split()
        self.target = Target(hostname="127.0.0.1", port=int(port), timeout_s=10)

    def rss_bytes(self) -> int:
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_s(self) -> float:
        with open(f"/proc/{self.process.pid}/stat") as file:
            columns = file.read().rpartition(")")[2].split()
        return (int(columns[11]) + int(columns[12])) / os.sysconf("SC_CLK_TCK")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.target.port), timeout=10)

    def latency_s(self, count: int = 200) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            assert call(self.target, GetStatus(), StatusReply).status == 1
            times.append(time.perf_counter() - start)
        return sorted(times)

    def end(self) -> None:
        self.process.terminate()
        output, _ = self.process.communicate(timeout=10)
        assert output.split() == ["0", "0"], "connections left, internal errors"
        assert self.process.returncode == 0


@contextlib.contextmanager
def serving(prefix: tuple[str, ...] = (), files: int = 0, **flags: object) -> Iterator[ServerProcess]:
    server = ServerProcess(prefix, files, **flags)
    try:
        yield server
        server.end()
    finally:
        server.process.kill()
        server.process.communicate()


def test_silent_connections_and_garbage_do_not_delay_status() -> None:
    """p99 of getStatus stays below 20 ms with 100 silent connections, and others that send nonsense all the time."""
    with serving() as server, contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(server.connect())
        times = []
        for garbage in (
            b"\xff" * 2000,
            LENGTH.pack(2**31 - 1),
            frame(b"[" * 50_000),
            LENGTH.pack(1 << 20) + b"x" * 60_000,
        ):
            for _ in range(25):
                stack.enter_context(server.connect()).sendall(garbage)
            times += server.latency_s()
        times.sort()
        assert times[int(len(times) * 0.99)] < 0.020


def test_six_hundred_connections_leave_the_newest_512_and_room_for_status() -> None:
    with serving() as server, contextlib.ExitStack() as stack:
        before = server.rss_bytes()
        silent = [stack.enter_context(server.connect()) for _ in range(600)]
        assert server.latency_s(50)
        poll = select.poll()
        for sock in silent:
            poll.register(sock, select.POLLIN)
        ended = {number for number, _ in poll.poll(5000)}
        # getStatus needs a place of its own for a moment when its request is not there at once.
        assert 88 <= len(ended) <= 88 + 50
        assert ended == {sock.fileno() for sock in silent[: len(ended)]}
        assert server.rss_bytes() - before < 8 << 20


def test_claimed_and_sent_megabytes_stay_bounded() -> None:
    with serving() as server, contextlib.ExitStack() as stack:
        before = server.rss_bytes()
        for _ in range(100):
            stack.enter_context(server.connect()).sendall(LENGTH.pack(1 << 20))
        assert server.latency_s(50)
        assert server.rss_bytes() - before < 4 << 20
        for _ in range(100):
            sock = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                sock.sendall(LENGTH.pack(1 << 20) + b" " * ((1 << 20) - 1))
        assert server.latency_s(50)
        assert server.rss_bytes() - before < 80 << 20


def test_a_burst_of_large_requests_is_answered_one_at_a_time() -> None:
    """Costly requests that become complete at the same moment: getStatus, which came last, is answered between them."""
    with serving() as server:
        # How many are answered before it is seen depends on who runs when: on a busy machine the best of some tries counts.
        assert min(_answered_before_status(server) for _ in range(5)) < 20


def _answered_before_status(server: ServerProcess) -> int:
    """How many of 27 large requests, all complete before it came, were answered when getStatus was."""
    body = b'{"fn":"getStatus",' + b",".join(b'"%d":1' % key for key in range(90_000)) + b"}"
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(server.connect()) for _ in range(27)]
        for sock in others:
            sock.sendall(frame(body)[:-1])
        assert server.latency_s(20)
        server.process.send_signal(signal.SIGSTOP)
        for sock in others:
            sock.sendall(body[-1:])
        status = stack.enter_context(server.connect())
        status.sendall(STATUS)
        server.process.send_signal(signal.SIGCONT)
        assert status.recv(100)[4:] == b'{"status":1}'
        answered, _, _ = select.select(others, [], [], 0)
        assert all(sock.recv(100)[4:] == b'{"status":1}' for sock in others)
        return len(answered)


def test_without_descriptors_left_it_neither_spins_nor_dies() -> None:
    """EMFILE: an idle connection gives way, the next client is served, and no CPU is burnt."""
    with serving(files=40) as server, contextlib.ExitStack() as stack:
        for _ in range(80):
            stack.enter_context(server.connect())
        assert server.latency_s(30)
        before = server.cpu_s()
        time.sleep(1.0)
        assert server.cpu_s() - before < 0.2


def test_idle_it_does_not_wake() -> None:
    with serving() as server:
        server.latency_s(5)

        def switches() -> int:
            with open(f"/proc/{server.process.pid}/status") as file:
                return sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)

        before = switches()
        time.sleep(1.0)
        assert switches() - before <= 2


def test_many_requests_leave_no_memory_behind() -> None:
    with serving() as server:
        bodies = [
            b'{"fn":"nope"}',
            b"[" * 3000,
            b'{"fn":"setKinetOnDemandRequest","config":5}',
            b'{"fn":"listMetrics"}',
        ]

        def storm() -> None:
            for number in range(800):
                with server.connect() as sock:
                    sock.sendall(frame(bodies[number % len(bodies)]))
                    sock.recv(1 << 16)

        storm()
        before = server.rss_bytes()
        storm()
        assert server.rss_bytes() - before < 1 << 20


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user's process")
def test_the_uid_of_a_loopback_caller_is_its_own() -> None:
    """A child of another uid asks; the server, which echoes who it saw, knows which."""
    code = """
import os
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import SetKinetOnDemandRequest, TraceReply
os.setgid(65533)
os.setuid(65533)
for hostname in {hostnames!r}:
    call(Target(hostname=hostname, port={port}), SetKinetOnDemandRequest(config=""), TraceReply)
"""
    fakes = FakeServices()
    with running_server(fakes) as daemon:
        hostnames = [address.rpartition(":")[0].strip("[]") for address in daemon.server.addresses]
        filled = code.format(hostnames=hostnames, port=daemon.server.port)
        subprocess.run([sys.executable, "-c", filled], check=True, timeout=30)
        call(Target(port=daemon.server.port), SetKinetOnDemandRequest(config=""), TraceReply)
    assert [caller.uid for _, caller in fakes.traces.requests] == [65533] * len(hostnames) + [0]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a network namespace")
def test_where_the_kernel_has_ipv6_off_ipv4_serves() -> None:
    """A13: in a network namespace whose IPv6 is disabled."""
    script = 'ip link set lo up 2>/dev/null || exit 77; echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || exit 77; exec "$@"'
    probe = subprocess.run(["unshare", "-n", "sh", "-c", script, "sh", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("needs unshare, ip and a writable /proc/sys/net")
    server = ServerProcess(("unshare", "-n", "sh", "-c", script, "sh"))
    try:
        assert [address.partition(":")[0] for address in server.addresses] == ["127.0.0.1"]
        enter = ["nsenter", "-n", "-t", str(server.process.pid), sys.executable, "-c"]
        ask = (
            "from dynolog.rpc.client import *\nfrom dynolog.rpc.messages import *\n"
            f"print(call(Target(port={server.target.port}), GetStatus(), StatusReply).status)"
        )
        done = subprocess.run([*enter, ask], capture_output=True, text=True, check=True, timeout=30)
        assert done.stdout.strip() == "1"
        server.end()
    finally:
        server.process.kill()
        server.process.communicate()


def test_the_file_limit_of_this_machine_allows_the_tests() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 700, "raise it: ulimit -n 4096"
