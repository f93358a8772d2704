"""Hosts of a small cluster: a network namespace each, joined by a bridge in one more, where `dyno` runs. Needs root.

Nothing of the machine's own network is touched, and all is gone when the fixture ends.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

_SERIAL = iter(range(1000))


class NetHosts:
    """`count` namespaces with the addresses 10.77.0.10 and up."""

    def __init__(self, count: int) -> None:
        prefix = f"dyn{os.getpid()}x{next(_SERIAL)}"
        self.hub = f"{prefix}-hub"
        self.names = [f"{prefix}-{index}" for index in range(count)]

    def address(self, index: int) -> str:
        return f"10.77.0.{10 + index}"

    def build(self) -> None:
        for name in (self.hub, *self.names):
            _ip("netns", "add", name)
        _batch(
            self.hub, "link set lo up", "link add br0 type bridge", "addr add 10.77.0.1/16 dev br0", "link set br0 up"
        )
        for index, name in enumerate(self.names):
            _batch(
                self.hub,
                f"link add port{index} type veth peer name eth0 netns {name}",
                f"link set port{index} master br0",
                f"link set port{index} up",
            )
            _batch(name, "link set lo up", f"addr add {self.address(index)}/16 dev eth0", "link set eth0 up")

    def remove(self) -> None:
        for name in (*self.names, self.hub):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)

    def cut(self, index: int) -> None:
        """Take a host off the network, as when its machine is down."""
        _batch(self.hub, f"link set port{index} down")

    def inside(self, index: int | None) -> list[str]:
        """What to put before a command to run it on that host; None is where the user sits."""
        name = self.hub if index is None else self.names[index]
        # Not `ip netns exec`, which would give the process a mount namespace of its own.
        return [shutil.which("nsenter") or "nsenter", f"--net=/run/netns/{name}"]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _batch(namespace: str, *commands: str) -> None:
    subprocess.run(
        ["ip", "-n", namespace, "-batch", "-"],
        input="\n".join(commands) + "\n",
        text=True,
        check=True,
        capture_output=True,
    )


@contextlib.contextmanager
def net_hosts(count: int) -> Iterator[NetHosts]:
    hosts = NetHosts(count)
    try:
        hosts.build()
        yield hosts
    finally:
        hosts.remove()
