"""A live endpoint answers every trainer once, whatever else is sent to it."""

import array
import errno
import os
import random
import socket
import struct
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from dynolog.ipc.wire import MAX_CONFIG_BYTES, MAX_DATAGRAM_BYTES, MAX_PIDS, ConfigRequest, ContextMessage
from dynolog.model.trainer import Peer
from fakes.ipc_loop import Serve, Served
from fakes.trainer import FakeTrainer

ME = Peer(os.getpid(), os.geteuid(), os.getegid())


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_poll_is_answered_with_the_config(serve: Serve) -> None:
    served = serve()
    served.handler.text = "ACTIVITIES_DURATION_MSECS=500\n"
    trainer = FakeTrainer(served.name, pids=(7, 3, 1))
    trainer.poll(job_id=90210)
    assert trainer.receive() == ("req", b"ACTIVITIES_DURATION_MSECS=500\n")
    [(peer, sender, request)] = served.handler.requests
    assert peer == ME
    assert sender.address == trainer.address
    assert request == ConfigRequest(3, 90210, (7, 3, 1))
    trainer.close()


def test_without_a_config_the_answer_is_empty(serve: Serve) -> None:
    served = serve()
    trainer = FakeTrainer(served.name)
    trainer.poll()
    assert trainer.receive() == ("req", b"")
    trainer.close()


def test_a_registration_is_answered_with_a_count(serve: Serve) -> None:
    served = serve()
    served.handler.count = 4
    trainer = FakeTrainer(served.name, pids=(7,))
    trainer.register(gpu=2, job_id=5)
    assert trainer.receive() == ("ctxt", struct.pack("=i", 4))
    assert served.handler.contexts[0][2] == ContextMessage(2, 7, 5)
    trainer.close()


def test_one_process_with_two_sockets_is_answered_on_the_one_that_asks(serve: Serve) -> None:
    served = serve()
    first, second = FakeTrainer(served.name), FakeTrainer(served.name)
    second.poll()
    second.receive()
    assert not first.has_answer()
    first.poll()
    first.receive()
    assert not second.has_answer()
    first.close()
    second.close()


def test_a_handler_that_answers_none_sends_nothing(serve: Serve) -> None:
    served = serve()
    served.handler.text = None
    trainer = FakeTrainer(served.name)
    trainer.poll()
    wait_for(served, lambda: served.counters.requests == 1)
    assert not trainer.has_answer()
    trainer.close()


def test_there_is_never_more_than_one_answer(serve: Serve) -> None:
    served = serve()
    trainer = FakeTrainer(served.name)
    for _ in range(100):
        trainer.poll()
        trainer.receive()
    assert served.counters.replies == 100
    assert not trainer.has_answer()
    trainer.close()


def test_a_config_that_cannot_be_sent_is_given_back(serve: Serve) -> None:
    """The trainer's queue is full of answers that it never read."""
    served = serve()
    trainer = FakeTrainer(served.name)
    for _ in range(1000):
        trainer.poll()
        if served.counters.dropped_replies:
            break
    assert served.handler.lost == []  # there was no config in those
    served.handler.text = "A=1\n"
    trainer.poll()
    wait_for(served, lambda: bool(served.handler.lost))
    [(peer, sender, text)] = served.handler.lost
    assert (peer, sender.address, text) == (ME, trainer.address, "A=1\n")
    trainer.close()


def test_a_trainer_that_vanished_costs_nothing_and_its_config_is_given_back(serve: Serve) -> None:
    """A06: it closes its socket between its request and the answer; the loop is held until it has."""
    served = serve()
    served.handler.text = "A=1\n"
    gone, stays = FakeTrainer(served.name), FakeTrainer(served.name)

    def while_the_loop_is_busy() -> None:
        gone.poll()
        gone.close()

    served.thread.call(while_the_loop_is_busy)
    stays.poll()
    assert stays.receive() == ("req", b"A=1\n")
    assert [text for _, _, text in served.handler.lost] == ["A=1\n"]
    assert served.counters.dropped_replies == 1
    stays.close()


def test_a_config_too_long_for_a_datagram_is_given_back_and_the_trainer_answered(serve: Serve) -> None:
    served = serve()
    served.handler.text = "x" * (MAX_CONFIG_BYTES + 1)
    trainer = FakeTrainer(served.name)
    trainer.poll()
    assert trainer.receive() == ("req", b"")
    assert len(served.handler.lost) == 1
    served.handler.text = "x" * MAX_CONFIG_BYTES
    trainer.poll()
    assert trainer.receive() == ("req", b"x" * MAX_CONFIG_BYTES)
    trainer.close()


def test_a_failing_handler_is_said_once_and_the_trainer_still_answered(serve: Serve) -> None:
    served = serve()
    served.handler.error = RuntimeError("planted")
    trainer = FakeTrainer(served.name)
    for _ in range(3):
        trainer.poll()
        assert trainer.receive() == ("req", b"")
    trainer.register(0)
    assert trainer.receive() == ("ctxt", struct.pack("=i", -1))
    assert served.counters.handler_failures == 4
    assert [key for key in served.notices.said if key != "ipc_queue"] == ["ipc_failure_RuntimeError"]
    assert "planted" in served.notices.said["ipc_failure_RuntimeError"]
    trainer.close()


def test_a_sender_without_an_address_is_counted_and_not_asked_about(serve: Serve) -> None:
    served = serve()
    nameless, trainer = FakeTrainer(served.name, bound=False), FakeTrainer(served.name)
    nameless.poll()
    trainer.poll()
    trainer.receive()
    assert len(served.handler.requests) == 1
    assert served.counters.unanswerable == 1
    assert served.listener.status().dropped_replies == 1
    nameless.close()
    trainer.close()


@pytest.mark.parametrize("size", [0, 1, 39, 40, MAX_DATAGRAM_BYTES, MAX_DATAGRAM_BYTES + 1, 100_000])
def test_a_datagram_of_any_size_is_survived(serve: Serve, size: int) -> None:
    served = serve()
    trainer = FakeTrainer(served.name)
    trainer.send(b"\1" * size)
    trainer.poll()
    assert trainer.receive() == ("req", b"")
    assert served.counters.malformed == 1
    assert f"pid {os.getpid()}" in served.notices.said["ipc_malformed"]
    trainer.close()


def test_a_datagram_that_would_be_a_poll_if_its_end_were_cut_off_is_none(serve: Serve) -> None:
    served = serve()
    trainer = FakeTrainer(served.name)
    longest = struct.pack("=Q32siiq", 16 + 4 * MAX_PIDS, b"req", 3, MAX_PIDS, 0) + b"\1\0\0\0" * MAX_PIDS
    trainer.send(longest + b"\0")
    trainer.send(longest)
    assert trainer.receive() == ("req", b"")
    assert served.counters.malformed == 1
    assert served.counters.requests == 1
    trainer.close()


def test_descriptors_that_are_passed_along_are_not_taken(serve: Serve) -> None:
    """The answer comes all the same, and nothing is left open here."""
    served = serve()
    trainer = FakeTrainer(served.name)
    before = open_fds()
    payload = struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, 7)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    for _ in range(5):
        trainer.socket.sendmsg([payload], rights, 0, FakeTrainer.address_of(served.name, ""))
        assert trainer.receive() == ("req", b"")
    assert open_fds() == before
    assert served.handler.requests[0][0] == ME
    trainer.close()


def test_the_kernel_says_who_a_sender_is_whatever_it_claims(serve: Serve) -> None:
    """Two real children that both call themselves pid 1, as two containers would."""
    served = serve()
    script = (
        "import socket, struct, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(b'\\0' + sys.argv[2].encode()); "
        "s.sendto(struct.pack('=Q32siiqi', 20, b'req', 3, 1, 0, 1), b'\\0' + sys.argv[1].encode() + b'\\0'); s.recv(99)"
    )
    children = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", script, served.name, f"{served.name}-child{number}"])
        for number in range(2)
    ]
    assert [child.wait(10) for child in children] == [0, 0]
    assert {peer.pid for peer, _, _ in served.handler.requests} == {child.pid for child in children}
    assert {request.pids for _, _, request in served.handler.requests} == {(1,)}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to become another user")
def test_another_user_is_told_apart(serve: Serve) -> None:
    served = serve()
    script = (
        "import os, socket, struct, sys; os.setgid(65533); os.setuid(65534); s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
        "s.bind(b'\\0' + sys.argv[1].encode() + b'-other'); "
        "s.sendto(struct.pack('=Q32siiqi', 20, b'req', 3, 1, 0, 1), b'\\0' + sys.argv[1].encode() + b'\\0'); s.recv(99)"
    )
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", script, served.name])
    assert child.wait(10) == 0
    assert served.handler.requests[0][0] == Peer(child.pid, 65534, 65533)


def test_unread_answers_of_many_trainers_do_not_silence_the_others(serve: Serve) -> None:
    """Each holds one stale answer, as after a poll that timed out; they all count against the daemon's one send buffer."""
    served = serve()
    served.handler.keep = False
    stale = [FakeTrainer(served.name) for _ in range(400)]
    for trainer in stale:
        trainer.poll()
    wait_for(served, lambda: served.counters.requests == len(stale))
    trainer = FakeTrainer(served.name)
    trainer.poll()
    assert trainer.receive() == ("req", b"")
    assert served.counters.dropped_replies == 0
    for other in (*stale, trainer):
        other.close()


def test_an_abstract_trainer_is_not_answered_from_the_socket_file(serve: Serve, socket_dir: str) -> None:
    """libkineto ends its process when an answer comes from the other kind of address."""
    served = serve(socket_dir)
    abstract = FakeTrainer(served.name)
    abstract.socket.sendto(struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, 7), f"{socket_dir}/{served.name}")
    wait_for(served, lambda: served.counters.unanswerable == 1)
    assert not abstract.has_answer()
    assert served.handler.requests == []
    abstract.close()


def test_a_trainer_of_another_directory_is_told_why_it_gets_no_answer(serve: Serve, socket_dir: str) -> None:
    """The same directory under another name: libkineto compares the text and would end its process."""
    served = serve(socket_dir)
    for directory in (f"{socket_dir}/", f"{socket_dir}/../{os.path.basename(socket_dir)}"):
        trainer = FakeTrainer(served.name, directory)
        trainer.poll()
        trainer.poll()
        wait_for(served, lambda: served.counters.unanswerable % 2 == 0 and served.counters.unanswerable > 0)
        assert not trainer.has_answer()
        trainer.close()
    assert "KINETO_IPC_SOCKET_DIR" in served.notices.said["ipc_directory"]


def test_a_slash_at_the_end_of_the_daemons_directory_does_no_harm(serve: Serve, socket_dir: str) -> None:
    served = serve(f"{socket_dir}/")
    for directory in (socket_dir, f"{socket_dir}/"):
        trainer = FakeTrainer(served.name, directory)
        trainer.poll()
        assert trainer.receive() == ("req", b"")
        trainer.close()


def test_a_socket_elsewhere_is_never_written_to(serve: Serve, socket_dir: str) -> None:
    """Its owner's mount namespace may give that path another meaning: somebody else's socket here."""
    inner = os.path.join(socket_dir, "inner")
    served = serve(inner)
    trainer = FakeTrainer(served.name, socket_dir)
    trainer.socket.sendto(struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, 7), f"{inner}/{served.name}")
    wait_for(served, lambda: served.counters.unanswerable == 1)
    assert not trainer.has_answer()
    trainer.close()


class FailingSocket(socket.socket):
    """A bound socket whose next reads fail with these numbers."""

    failures: list[int]

    def recvmsg_into(self, *args: Any) -> Any:
        if self.failures:
            raise OSError(self.failures[0], os.strerror(self.failures.pop(0)))
        return super().recvmsg_into(*args)


@pytest.mark.parametrize(("number", "answered"), [(errno.ENOMEM, True), (errno.EBADF, False)])
def test_a_read_that_fails_for_want_of_memory_is_tried_again(serve: Serve, number: int, answered: bool) -> None:
    """Any other failure ends this endpoint, which is said, instead of turning the loop into a busy one."""
    served = serve()
    name = f"{served.name}-failing"
    failing = FailingSocket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    failing.failures = [number]
    failing.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    failing.bind(FakeTrainer.address_of(name, ""))
    served.listener.namespace_joined(7, failing)
    trainer = FakeTrainer(name)
    trainer.poll()
    if answered:
        assert trainer.receive() == ("req", b"")
    else:
        wait_for(served, lambda: "ipc_receive" in served.notices.said)
        assert f"stopped the IPC at @{name}: Bad file descriptor" in served.notices.said["ipc_receive"]
        assert not trainer.has_answer()
    trainer.close()


def wait_for(served: Served, condition: object) -> None:
    """Runs the loop until what was already sent has been served; every step of it is an event of that loop."""
    assert callable(condition)
    for _ in range(20_000):
        if condition():
            return
        served.settled()
    raise AssertionError("the loop never got there")


def test_thousands_of_random_datagrams_change_nothing(serve: Serve) -> None:
    """From named and nameless senders, and from senders that are gone before their answer: no descriptor, no memory stays."""
    served = serve()
    served.handler.keep = False
    rng = random.Random(20221)
    steady = FakeTrainer(served.name)

    def storm(datagrams: int) -> None:
        sender = FakeTrainer(served.name)
        for number in range(datagrams):
            if number % 10 == 0:
                sender.close()
                sender = FakeTrainer(served.name, bound=bool(rng.getrandbits(2)))
            sender.send(random_datagram(rng))
            if number % 100 == 0:
                steady.poll()
                assert steady.receive() == ("req", b"")
        sender.close()

    storm(500)
    fds = open_fds()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        storm(5000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert open_fds() == fds
    assert grown < 50_000
    counters = served.counters
    assert counters.malformed > 1000
    assert counters.unanswerable > 100
    assert counters.replies > 100
    assert counters.handler_failures == 0
    steady.close()


def random_datagram(rng: random.Random) -> bytes:
    """Rubbish, nearly right messages, and right ones."""
    if rng.random() < 0.25:
        return struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, 7)
    kind = rng.choice([b"req", b"ctxt", b"req\0x", b"nonsense", bytes(rng.randbytes(32))])
    payload = rng.choice(
        [
            rng.randbytes(rng.randrange(64)),
            struct.pack("=iiqi", 3, rng.choice([1, -1, 0, 2, 2**31 - 1]), rng.getrandbits(62), rng.choice([7, 0, -1])),
            struct.pack("=iiq", rng.randrange(-2, 8), rng.randrange(-2, 8), 0),
        ]
    )
    size = rng.choice([len(payload), len(payload), len(payload), 0, 2**64 - 1, len(payload) + 1])
    whole = struct.pack("=Q32s", size, kind) + payload
    return whole if rng.random() < 0.9 else whole[: rng.randrange(len(whole))]
