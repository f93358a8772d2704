"""What the daemon tells the service manager that started it: ready, reloading, stopping, alive (sd_notify(3), systemd.service(5)).

One datagram each to the socket of NOTIFY_SOCKET. Without that variable nothing is sent: no manager waits for it.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping

_log = logging.getLogger(__name__)
# systemd.service(5): a service is to be heard of within WATCHDOG_USEC; half of it is what sd_watchdog_enabled(3) advises.
_PINGS_A_PERIOD = 2


class ServiceManager:
    """Speaks to the service manager. Made and used on the socket thread.

    The watchdog is answered by a timer of the loop that answers trainers and dyno: when that loop hangs, so do the pings, and
    the manager restarts the service. A collector or an exporter that hangs does not stop them, as it stops nothing else.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        path = environment.get("NOTIFY_SOCKET", "")
        # A name that begins with @ is one of the abstract namespace.
        self._address = "\0" + path[1:] if path.startswith("@") else path
        self._watchdog_s = _watchdog_s(environment)
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False

    @property
    def is_there(self) -> bool:
        """Whether a service manager wants to hear of this daemon."""
        return bool(self._address)

    def ready(self, loop: asyncio.AbstractEventLoop, status: str) -> None:
        """Everything listens; from now on the watchdog is answered."""
        self._tell(f"READY=1\nSTATUS={status}")
        if self._watchdog_s and self.is_there:
            self._ping(loop)

    def reloading(self) -> None:
        """A reload begins. The time tells the manager which of two reloads the next READY belongs to."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self) -> None:
        """The reload is done, whether anything changed or not."""
        self._tell("READY=1")

    def stopping(self) -> None:
        """The stop begins: no more pings are due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell("STOPPING=1")

    def close(self) -> None:
        """Let go of the socket."""
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ping(self, loop: asyncio.AbstractEventLoop) -> None:
        self._tell("WATCHDOG=1")
        self._timer = loop.call_later(self._watchdog_s / _PINGS_A_PERIOD, self._ping, loop)

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._socket.setblocking(False)
            self._socket.sendto(state.encode(), self._address)
        except OSError as error:
            if not self._failed:
                self._failed = True
                _log.warning("the service manager could not be told %s: %s", state.partition("\n")[0], error)
        else:
            self._failed = False


def _watchdog_s(environment: Mapping[str, str]) -> float:
    """The watchdog's period; 0 when it is off or meant for another process (sd_watchdog_enabled(3))."""
    try:
        pid = int(environment.get("WATCHDOG_PID") or os.getpid())
        period_us = int(environment.get("WATCHDOG_USEC") or 0)
    except ValueError:
        _log.warning("WATCHDOG_USEC or WATCHDOG_PID is not a number: the watchdog is not answered")
        return 0.0
    return max(period_us, 0) / 1e6 if pid == os.getpid() else 0.0
