"""State of the link of physical interfaces and bonds (`/sys/class/net/NAME`, sysfs-class-net)."""

import os
from collections.abc import Iterable

import msgspec

from dynolog.sources.host_files import HostFiles

# Drivers that do not know print -1, older kernels the same as an unsigned number.
_FASTEST_MBPS = 10_000_000
_UP = {"up": 1, "down": 0, "lowerlayerdown": 0, "notpresent": 0, "dormant": 0}


class Link(msgspec.Struct, frozen=True):
    """One interface: negotiated speed in Mbit/s, times the carrier came or went since it was made, 1 for up. None: unknown."""

    speed_mbps: int | None = None
    carrier_changes: int | None = None
    up: int | None = None


def read_links(host: HostFiles, names: Iterable[str]) -> dict[str, Link]:
    """Links of those interfaces in `names` that have hardware below them. May wait: `speed` takes the kernel's rtnl lock.

    Only these: a tunnel or veth prints a speed that means nothing. An interface that vanished or cannot be read is left out.
    """
    links: dict[str, Link] = {}
    for name in names:
        path = f"sys/class/net/{name}"
        # An alias (eth0:1) has no directory; a bond has no device but adds up its members.
        if os.path.exists(host.path(f"{path}/device")) or os.path.exists(host.path(f"{path}/bonding")):
            speed = _number(host, f"{path}/speed")
            links[name] = Link(
                speed if speed is not None and speed <= _FASTEST_MBPS else None,
                _number(host, f"{path}/carrier_changes", smallest=0),
                _UP.get(host.read_text(f"{path}/operstate") or ""),
            )
    return links


def _number(host: HostFiles, path: str, smallest: int = 1) -> int | None:
    text = host.read_text(path)
    if text is None or not text.isascii() or not text.isdecimal():
        return None
    return int(text) if len(text) < 20 and int(text) >= smallest else None
