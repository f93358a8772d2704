"""Trainers in real network namespaces are served without a mount, and leave nothing behind."""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from dynolog.ipc.listener import IpcListener
from dynolog.ipc.namespace_watch import NamespaceWatch
from fakes.collector_context import FakeNotices
from fakes.ipc_loop import FakeHandler, LoopThread
from fakes.namespace_children import NamespaceChildren, network_namespaces_of_threads

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces are made and entered"),
]

HOME = os.readlink("/proc/self/ns/net")


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


class FakeSink:
    """Keeps the sockets."""

    def __init__(self) -> None:
        self.sockets: dict[int, socket.socket] = {}

    def namespace_joined(self, inode: int, sock: socket.socket) -> None:
        assert inode not in self.sockets
        self.sockets[inode] = sock

    def namespace_left(self, inode: int) -> None:
        self.sockets.pop(inode).close()


class CountingNotices(FakeNotices):
    """Counts how often something was said."""

    times = 0

    def say(self, key: str, sentence: str) -> None:
        self.times += 1
        super().say(key, sentence)


@pytest.fixture
def sink() -> Iterator[FakeSink]:
    """Closes at the end what was joined: real containers of this machine may hold trainers."""
    sink = FakeSink()
    yield sink
    for sock in sink.sockets.values():
        sock.close()


@pytest.fixture
def name() -> str:
    return f"dynolog-{uuid.uuid4()}"


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    with LoopThread() as thread:
        yield thread


@pytest.mark.parametrize("pid_namespace", [False, True])
def test_a_trainer_in_its_own_namespaces_gets_its_config(name: str, thread: LoopThread, pid_namespace: bool) -> None:
    """It says that it is pid 1; the kernel says which process of the host it is."""
    handler, notices = FakeHandler("A=1"), FakeNotices()
    listener = IpcListener(handler, thread.loop, notices, name=name, namespaces=True, scan_interval_s=0.05)
    thread.call(listener.start)
    try:
        with NamespaceChildren(2, name, poll=True, pid_namespace=pid_namespace) as children:
            answers = [children.answer().split(" ", 1) for _ in range(2)]
            assert [text for _, text in answers] == ["A=1", "A=1"]
            asked = handler.requests[:2]
            assert len({peer.pid for peer, _, _ in asked}) == 2
            namespaces = {int(os.readlink(f"/proc/{peer.pid}/ns/net")[5:-1]) for peer, _, _ in asked}
            assert {sender.net_namespace for _, sender, _ in asked} == namespaces
            if pid_namespace:
                assert [request.pids for _, _, request in asked] == [(1,), (1,)]
            assert {f"@{name} in net:[{inode}]" for inode in namespaces} < set(listener.addresses)
    finally:
        thread.call(listener.close)
    assert network_namespaces_of_threads() == {HOME}


def test_fifty_namespaces_that_come_and_go_leave_no_descriptor(name: str, sink: FakeSink) -> None:
    watch = NamespaceWatch(sink, FakeNotices(), name, 10.0)
    watch.scan_once()
    others = dict(sink.sockets)  # containers of this machine that hold trainers
    before = open_fds()
    for _ in range(3):
        with NamespaceChildren(50, name) as children:
            watch.scan_once()
            assert len(sink.sockets) == len(others) + 50
            assert network_namespaces_of_threads() == {HOME}
            watch.scan_once()
            children.end()
            watch.scan_once()
            assert sink.sockets == others
    assert open_fds() == before
    assert set(watch._joined) == set(others)


def test_namespaces_without_trainers_are_not_joined(name: str, sink: FakeSink) -> None:
    watch = NamespaceWatch(sink, FakeNotices(), name, 10.0)
    watch.scan_once()
    others = dict(sink.sockets)
    with NamespaceChildren(3, name, client="somebody-else"):
        watch.scan_once()
        assert sink.sockets == others


def test_a_name_that_is_taken_inside_is_said_once_and_left_alone(name: str, sink: FakeSink) -> None:
    """Another daemon runs in that container: its own socket has a mark that makes it look like a trainer's."""
    taken = f"dynoconfigclient-{name}"
    notices = CountingNotices()
    watch = NamespaceWatch(sink, notices, taken, 10.0)
    watch.scan_once()
    others = dict(sink.sockets)
    with NamespaceChildren(3, name, client=taken):
        for _ in range(6):
            watch.scan_once()
        assert sink.sockets == others
        [sentence] = notices.said.values()
        assert "another daemon runs there" in sentence
        assert notices.times == 3  # once for each namespace: the next attempt is a minute away


def test_without_the_rights_it_says_so_and_scans_nothing() -> None:
    """A real unprivileged process starts the watch."""
    script = """
import os, threading
from dynolog.ipc.namespace_watch import NamespaceWatch
os.setgroups([]); os.setgid(65534); os.setuid(65534)
class Notices:
    def say(self, key, sentence): print(key, sentence)
watch = NamespaceWatch(None, Notices(), "dynolog", 0.01)
watch.start()
print(threading.active_count())
watch.close()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert "lacks CAP_SYS_ADMIN and CAP_SYS_PTRACE: run it as root" in done.stdout, done.stderr
    assert done.stdout.endswith("\n1\n")
