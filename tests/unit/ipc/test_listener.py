"""The names the IPC listens on: made, shared out, and given back."""

import os
import socket
import stat
from multiprocessing.connection import wait as wait_readable

import pytest

from dynolog.ipc.address import abstract
from dynolog.ipc.endpoint import bound_socket
from dynolog.model.errors import DynologError
from fakes.ipc_loop import Serve
from fakes.trainer import FakeTrainer


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_both_kinds_of_address_are_served_at_once(serve: Serve, socket_dir: str) -> None:
    """A07: a container that shares only a directory, and a process on the host."""
    served = serve(socket_dir)
    path = f"{socket_dir}/{served.name}"
    assert served.listener.addresses == (f"@{served.name}", path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o666
    for trainer in (FakeTrainer(served.name), FakeTrainer(served.name, socket_dir)):
        trainer.poll()
        assert trainer.receive() == ("req", b"")
        trainer.close()
    served.settled()
    assert served.listener.status(trainers=2).replies == 2


def test_an_answer_comes_from_the_name_that_was_asked(serve: Serve, socket_dir: str) -> None:
    """libkineto looks at who answers."""
    served = serve(socket_dir)
    for directory, name in (("", abstract(served.name)), (socket_dir, f"{socket_dir}/{served.name}")):
        trainer = FakeTrainer(served.name, directory)
        trainer.poll()
        wait_readable([trainer.socket], 5)
        assert trainer.socket.recvfrom(99)[1] == name
        trainer.close()


def test_a_second_daemon_is_told_who_holds_the_name(serve: Serve) -> None:
    first = serve()
    before = open_fds()
    with pytest.raises(DynologError, match=f"the IPC name @{first.name} is held by pid {os.getpid()} \\("):
        serve(name=first.name)
    assert open_fds() - before <= 4  # the loop of the fixture, and no socket of the IPC
    trainer = FakeTrainer(first.name)
    trainer.poll()
    trainer.receive()
    trainer.close()


def test_the_socket_file_of_a_live_daemon_is_not_stolen(serve: Serve, socket_dir: str) -> None:
    """Its abstract name can be free: it may live in another network namespace."""
    with bound_socket(f"{socket_dir}/taken".encode()) as live:
        with pytest.raises(DynologError, match=f"held by pid {os.getpid()}"):
            serve(socket_dir, name="taken")
        trainer = FakeTrainer("taken", socket_dir)
        trainer.poll()
        assert live.recv(99)
        trainer.close()
    serve(socket_dir, name="taken")  # the failed start left nothing, and the file is stale now


def test_close_gives_everything_back(serve: Serve, socket_dir: str) -> None:
    served = serve(socket_dir)
    before = open_fds()
    served.close()
    assert open_fds() == before - 2
    assert os.listdir(socket_dir) == []
    assert served.listener.addresses == ()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as next_one:
        next_one.bind(abstract(served.name))


def test_a_file_that_another_daemon_put_there_since_is_left(serve: Serve, socket_dir: str) -> None:
    served = serve(socket_dir)
    path = f"{socket_dir}/{served.name}"
    os.unlink(path)
    with bound_socket(path.encode()):
        served.close()
        assert os.path.exists(path)


def test_notices_are_in_the_status(serve: Serve, socket_dir: str) -> None:
    os.chmod(socket_dir, 0o755)
    served = serve(socket_dir)
    assert any("chmod 1777" in notice for notice in served.listener.status().notices)
    assert "chmod 1777" in served.notices.said["ipc_socket_dir"]


def test_an_impossible_directory_is_one_sentence(serve: Serve) -> None:
    with pytest.raises(DynologError, match="cannot be made"):
        serve("/proc/nowhere")
    with pytest.raises(DynologError, match="too long a path"):
        serve("/tmp/" + "x" * 120)


def test_a_namespace_that_is_joined_during_the_close_is_closed_too(serve: Serve) -> None:
    served = serve()
    late = bound_socket(abstract(f"{served.name}-late"))

    def join_and_close() -> None:
        served.listener.namespace_joined(7, late)
        served.listener.close()

    served.thread.call(join_and_close)
    served.settled()
    assert late.fileno() == -1
    assert served.listener.addresses == ()


def test_a_namespace_that_is_left_is_served_no_longer(serve: Serve) -> None:
    served = serve()
    inside = bound_socket(abstract(f"{served.name}-inside"))
    served.listener.namespace_joined(7, inside)
    trainer = FakeTrainer(f"{served.name}-inside")
    trainer.poll()
    assert trainer.receive() == ("req", b"")
    assert served.handler.requests[0][1].net_namespace == 7
    assert served.listener.addresses[1] == f"@{served.name}-inside in net:[7]"
    served.listener.namespace_left(7)
    served.settled()
    assert inside.fileno() == -1
    assert len(served.listener.addresses) == 1
    trainer.close()


def test_a_proc_that_hides_other_users_processes_is_said(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ipc_hidden" not in serve().notices.said
    monkeypatch.setattr("dynolog.ipc.listener._FIRST_PROCESS", "/proc/1/no-such-file")
    assert "hidepid" in serve().notices.said["ipc_hidden"]
