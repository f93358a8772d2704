"""Temperatures, fans and power of the hardware's own sensors (`/sys/class/hwmon/`, Documentation/hwmon/sysfs-interface.rst)."""

import os
import re
from collections.abc import Iterator

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_integer
from dynolog.sources.host_files import HostFiles

_FOLDER = "sys/class/hwmon"
_CHANNEL = re.compile(r"(temp|fan|power)(\d+)_(input|average)")
_ODD = re.compile(r"[^A-Za-z0-9_.:+/-]+")
# Reading drivetemp may reset a disk's spin-down timer, so looking would keep idle disks spinning.
_LEFT_ALONE = frozenset({"drivetemp"})


class Sensor(msgspec.Struct, frozen=True):
    """One sensor: `kind` is temp, fan or power; `name` is chip and label, the same after a restart of the host."""

    kind: str
    name: str
    path: str
    fault_path: str = ""


def find_sensors(host: HostFiles) -> list[Sensor]:
    """All sensors; names are made unique. A chip that cannot be read is left out."""
    sensors: list[Sensor] = []
    taken: set[tuple[str, str]] = set()
    for hwmon in host.list(_FOLDER):
        folder = f"{_FOLDER}/{hwmon}"
        chip = host.read_text(f"{folder}/name")
        if not chip or chip in _LEFT_ALONE:
            continue
        for sensor in _sensors_of_chip(host, folder, _chip_name(host, folder, chip)):
            unique = sensor
            if (sensor.kind, sensor.name) in taken:
                channel = os.path.basename(sensor.path).partition("_")[0]
                unique = msgspec.structs.replace(sensor, name=f"{sensor.name}_{hwmon}_{channel}")
            taken.add((unique.kind, unique.name))
            sensors.append(unique)
    return sensors


def _chip_name(host: HostFiles, folder: str, chip: str) -> str:
    """Two sockets are both `coretemp`, so the device behind the chip is part of the name: `coretemp.1`, `k10temp/0000:00:18.3`."""
    try:
        device = os.path.basename(os.readlink(host.path(f"{folder}/device")))
    except OSError:
        return chip
    return device if device.startswith(chip) else f"{chip}/{device}"


def _sensors_of_chip(host: HostFiles, folder: str, chip: str) -> Iterator[Sensor]:
    files = set(host.list(folder))
    for file in sorted(files):
        channel = _CHANNEL.fullmatch(file)
        if not channel or (channel[3] == "average" and f"power{channel[2]}_input" in files):
            continue
        kind, number = channel[1], channel[2]
        label = host.read_text(f"{folder}/{kind}{number}_label") if f"{kind}{number}_label" in files else None
        fault = f"{kind}{number}_fault"
        yield Sensor(
            kind,
            _ODD.sub("_", f"{chip}/{label or kind + number}"),
            host.path(f"{folder}/{file}"),
            host.path(f"{folder}/{fault}") if fault in files else "",
        )


class HwmonReader:
    """Reads all sensors again and again. Raises SourceUnavailable when there is none."""

    # A chip that comes or goes shows in the directory; that one took the place of another shows at the next full look.
    SENSORS_EVERY = 60

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._sensors: list[Sensor] = []
        self._chips: list[str] = []
        self._rounds = 0

    def read(self) -> list[tuple[Sensor, int]]:
        """Sensors with what they say, in m°C, revolutions a minute or µW; one that is faulty, off or gone is left out."""
        chips = self._host.list(_FOLDER)
        if chips != self._chips or self._rounds % self.SENSORS_EVERY == 0:
            self._sensors = find_sensors(self._host)
            self._chips = chips
        self._rounds += 1
        if not self._sensors:
            raise SourceUnavailable("/" + _FOLDER, "no sensor")
        return [
            (sensor, value)
            for sensor in self._sensors
            if not (sensor.fault_path and read_integer(sensor.fault_path))
            and (value := read_integer(sensor.path)) is not None
        ]
