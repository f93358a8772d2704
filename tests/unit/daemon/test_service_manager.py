"""What the service manager is told, on a real socket."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.daemon.service_manager import ServiceManager


class Manager:
    """The other side: what systemd would hear."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(30)

    def hear(self) -> list[str]:
        return self.socket.recv(4096).decode().splitlines()

    def hears_nothing(self) -> bool:
        self.socket.setblocking(False)
        try:
            self.socket.recv(4096)
        except BlockingIOError:
            return True
        return False


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "notify")


@pytest.fixture
def manager(path: str) -> Iterator[Manager]:
    other = Manager(path)
    yield other
    other.socket.close()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def run_until(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    loop.run_until_complete(asyncio.sleep(seconds))


def test_ready_reload_and_stop_are_told(path: str, manager: Manager, loop: asyncio.AbstractEventLoop) -> None:
    service = ServiceManager({"NOTIFY_SOCKET": path})
    service.ready(loop, "serves on [::1]:1778")
    assert manager.hear() == ["READY=1", "STATUS=serves on [::1]:1778"]
    service.reloading()
    reloading, since = manager.hear()
    assert reloading == "RELOADING=1"
    assert int(since.removeprefix("MONOTONIC_USEC=")) > 0
    service.reloaded()
    assert manager.hear() == ["READY=1"]
    service.stopping()
    assert manager.hear() == ["STOPPING=1"]
    service.close()
    assert manager.hears_nothing(), "no watchdog was asked for"


def test_the_watchdog_is_answered_by_the_loop_only(
    path: str, manager: Manager, loop: asyncio.AbstractEventLoop
) -> None:
    service = ServiceManager({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())})
    service.ready(loop, "")
    assert manager.hear()[0] == "READY=1"
    assert manager.hear() == ["WATCHDOG=1"]
    assert manager.hears_nothing(), "a loop that does not run must not look alive"
    manager.socket.settimeout(30)
    run_until(loop, 0.05)
    assert manager.hear() == ["WATCHDOG=1"]
    service.stopping()
    service.close()


@pytest.mark.parametrize(
    "environment",
    [{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "many"}, {"WATCHDOG_USEC": "-5"}],
    ids=["meant for another process", "no number", "negative"],
)
def test_no_watchdog_of_ours(
    path: str, manager: Manager, loop: asyncio.AbstractEventLoop, environment: dict[str, str]
) -> None:
    service = ServiceManager({"NOTIFY_SOCKET": path, **environment})
    service.ready(loop, "")
    manager.hear()
    run_until(loop, 0.02)
    assert manager.hears_nothing()
    service.close()


def test_an_abstract_address(loop: asyncio.AbstractEventLoop) -> None:
    other = Manager(f"\0dynolog-test-{os.getpid()}")
    service = ServiceManager({"NOTIFY_SOCKET": f"@dynolog-test-{os.getpid()}"})
    service.ready(loop, "")
    assert other.hear()[0] == "READY=1"
    service.close()
    other.socket.close()


def test_nobody_waits(loop: asyncio.AbstractEventLoop) -> None:
    service = ServiceManager({})
    assert not service.is_there
    service.ready(loop, "")
    service.close()


def test_a_manager_that_has_gone_is_said_once(
    path: str, loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    service = ServiceManager({"NOTIFY_SOCKET": path})
    with caplog.at_level(logging.WARNING):
        service.ready(loop, "")
        service.reloading()
        service.reloaded()
    (record,) = caplog.records
    assert "could not be told READY=1" in record.getMessage()
    service.close()
