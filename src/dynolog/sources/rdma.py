"""InfiniBand and RoCE ports (`/sys/class/infiniband/DEVICE/ports/N/`, Documentation/ABI/stable/sysfs-class-infiniband).

A port is named as users of NCCL and UCX name it: `mlx5_0`, and `mlx5_0:2` for a second port. Port 1 has the bare name, because the public
Dynolog reads port 1 alone. Each port is a series of its own: no name stands for a sum.

What is there depends on the network namespace: with `rdma system set netns exclusive` a daemon sees only the devices of its own.
"""

import fnmatch
import re
import time
from collections.abc import Callable, Sequence

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_attribute
from dynolog.sources.counter_file import CounterFile
from dynolog.sources.host_files import HostFiles
from dynolog.sources.rdma_counters import HARDWARE_COUNTERS, PORT_COUNTERS
from dynolog.sources.rdma_net_devices import net_devices

_FOLDER = "sys/class/infiniband"
_STATE = re.compile(rb"\s*(\d{1,3}):")
_RATE = re.compile(rb"\s*(\d{1,7}(?:\.\d{1,3})?) Gb/sec(?:\s*\((\d{1,3})X)?")


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Link of a port as `ibstat` shows it; None: not known. `state` 1 down, 2 initialize, 3 armed, 4 active; `physical_state` 2 polling,
    3 disabled, 5 link up, 6 error recovery; `lanes` is the width.
    """

    state: int | None = None
    physical_state: int | None = None
    rate_gbps: float | None = None
    lanes: int | None = None


class PortReading(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a port: counters by their name here, the link, the network devices that carry it."""

    counters: dict[str, int]
    link: Link
    net_devices: tuple[str, ...]
    refused: int


class _Port(msgspec.Struct, frozen=True):
    """What is read of a port: the files of each directory together, because a driver may ask its firmware once for all of them."""

    folder: str
    files: tuple[tuple[str, CounterFile], ...]
    net_devices: tuple[str, ...]


def parse_state(data: bytes | None) -> int | None:
    """The number of `4: ACTIVE`, or None. Never raises."""
    found = _STATE.match(data) if data else None
    return int(found[1]) if found else None


def parse_rate(data: bytes | None) -> tuple[float | None, int | None]:
    """Gbit/s and lanes of `400 Gb/sec (4X NDR)`; None for what is not there. Never raises."""
    found = _RATE.match(data) if data else None
    if found is None:
        return None, None
    return float(found[1]), int(found[2]) if found[2] else None


def port_name(device: str, port: int) -> str:
    """`mlx5_0` for its first port, `mlx5_0:2` for its second."""
    return device if port == 1 else f"{device}:{port}"


class RdmaReader:
    """Reads all ports again and again; `patterns` gives the shell patterns of the devices to read (none: all).

    Raises SourceUnavailable when there is no such device. A device or file that cannot be read costs only itself.
    """

    LOOK_AGAIN_S = 30.0

    def __init__(
        self,
        host: HostFiles,
        patterns: Callable[[], Sequence[str]],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._patterns = patterns
        self._clock_s = clock_s
        self._devices: list[str] = []
        self._ports: dict[str, _Port] = {}
        self._files: dict[str, CounterFile] = {}
        self._looked_s = float("-inf")

    def read(self) -> dict[str, PortReading]:
        """By name of the port."""
        now_s = self._clock_s()
        patterns = self._patterns()
        there = self._host.list(_FOLDER)
        devices = [name for name in there if _is_wanted(name, patterns)]
        if not devices:
            raise _none_of(there)
        if devices != self._devices or now_s - self._looked_s >= self.LOOK_AGAIN_S:
            self._look(devices)
            self._devices = devices
            self._looked_s = now_s
        return {name: self._read_port(port, now_s) for name, port in self._ports.items()}

    def _look(self, devices: list[str]) -> None:
        known, self._files = self._files, {}
        self._ports = {}
        for device in devices:
            numbers = sorted(int(name) for name in self._host.list(f"{_FOLDER}/{device}/ports") if name.isdecimal())
            for number in numbers:
                folder = f"{_FOLDER}/{device}/ports/{number}"
                wanted = {
                    **self._wanted(
                        f"{_FOLDER}/{device}/hw_counters", HARDWARE_COUNTERS if number == numbers[0] else {}
                    ),
                    **self._wanted(f"{folder}/hw_counters", HARDWARE_COUNTERS),
                    **self._wanted(f"{folder}/counters", PORT_COUNTERS),
                }
                files = tuple((name, known.get(path) or CounterFile(path)) for name, path in wanted.items())
                self._files.update((file.path, file) for _, file in files)
                nets = net_devices(self._host, device, number)
                self._ports[port_name(device, number)] = _Port(self._host.path(folder), files, nets)

    def _wanted(self, folder: str, names: dict[str, str]) -> dict[str, str]:
        """Path by name. Where a device and its port have the same counter, the port's is taken by the caller: they would count twice."""
        if not names:
            return {}
        path = self._host.path(folder)
        return {names[file]: f"{path}/{file}" for file in self._host.list(folder) if file in names}

    def _read_port(self, port: _Port, now_s: float) -> PortReading:
        counters: dict[str, int] = {}
        for name, file in port.files:
            if (number := file.read(now_s)) is not None:
                counters[name] = number
        rate_gbps, lanes = parse_rate(read_attribute(f"{port.folder}/rate"))
        link = Link(
            state=parse_state(read_attribute(f"{port.folder}/state")),
            physical_state=parse_state(read_attribute(f"{port.folder}/phys_state")),
            rate_gbps=rate_gbps,
            lanes=lanes,
        )
        refused = sum(file.is_refused for _, file in port.files)
        return PortReading(counters=counters, link=link, net_devices=port.net_devices, refused=refused)


def _none_of(there: list[str]) -> SourceUnavailable:
    if there:
        return SourceUnavailable(
            "/" + _FOLDER, "no RDMA device is one of those to measure", f"there are {', '.join(there)}"
        )
    return SourceUnavailable(
        "/" + _FOLDER,
        "no RDMA device is there",
        "load its driver; in a container, use the host's network: devices may belong to a network namespace",
    )


def _is_wanted(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
