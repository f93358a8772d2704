"""The PMUs of a host and what the kernel says about each (`/sys/bus/event_source/devices`, sysfs-bus-event_source-devices-*)."""

import re
from collections.abc import Callable
from functools import cached_property

import msgspec

from dynolog.sources.host_files import HostFiles
from dynolog.sources.pmu_format import FormatField, parse_format
from dynolog.sources.topology import parse_cpu_list

DEVICES = "sys/bus/event_source/devices"
_NUMBERED = re.compile(r"(.+?)_?(\d+)")
# Files beside an event that say something about it and are no events themselves.
_ABOUT_AN_EVENT = (".scale", ".unit", ".per-pkg", ".snapshot")


class NamedEvent(msgspec.Struct, frozen=True):
    """An event that the kernel names: `terms` as in `pmu/terms/`; a count times `scale` is in `unit` ("" for a plain number)."""

    name: str
    terms: str
    scale: float = 1.0
    unit: str = ""


class PmuDevice:
    """One PMU. `format/`, `events/` and `caps/` are read at first use: a server has hundreds of PMUs, of which a few are used.

    `cpumask` is the CPUs through which a PMU outside the cores is read, one a socket or die; `cpus` those that a core PMU
    belongs to. Each is None when the kernel has no such file.
    """

    def __init__(
        self,
        host: HostFiles,
        name: str,
        type_number: int,
        cpumask: tuple[int, ...] | None = None,
        cpus: tuple[int, ...] | None = None,
    ) -> None:
        self._host = host
        self.name = name
        self.type = type_number
        self.cpumask = cpumask
        self.cpus = cpus

    @property
    def is_core(self) -> bool:
        """Counts what a core does: the generic events mean this PMU."""
        return self.name == "cpu" or (self.cpus is not None and self.cpumask is None)

    @property
    def where(self) -> tuple[int, ...] | None:
        """The CPUs to open its events on; None for each CPU that is online."""
        return self.cpus if self.cpumask is None else self.cpumask

    @property
    def core_type(self) -> str:
        """`core` or `atom` on a hybrid processor (`cpu_core`, `cpu_atom`), "" elsewhere."""
        return self.name[4:] if self.is_core and self.name.startswith("cpu_") else ""

    @property
    def family(self) -> str:
        """The name without its instance: `uncore_imc_11` → `uncore_imc`, `amd_umc_0` → `amd_umc`, `power` → `power`."""
        match = _NUMBERED.fullmatch(self.name)
        return match[1] if match else self.name

    @cached_property
    def formats(self) -> dict[str, FormatField]:
        """Fields by name; one whose file does not parse is left out."""
        fields: dict[str, FormatField] = {}
        for name in self._host.list(f"{DEVICES}/{self.name}/format"):
            try:
                fields[name] = parse_format(self._host.read_text(f"{DEVICES}/{self.name}/format/{name}") or "")
            except ValueError:
                continue
        return fields

    @cached_property
    def events(self) -> dict[str, NamedEvent]:
        """Events by name; one that cannot be read is left out."""
        directory = f"{DEVICES}/{self.name}/events"
        names = self._host.list(directory)
        events: dict[str, NamedEvent] = {}
        for name in names:
            if name.endswith(_ABOUT_AN_EVENT):
                continue
            terms = self._host.read_text(f"{directory}/{name}")
            scale = self._scale(f"{directory}/{name}.scale") if f"{name}.scale" in names else 1.0
            if not terms or scale is None:
                continue
            unit = (self._host.read_text(f"{directory}/{name}.unit") or "") if f"{name}.unit" in names else ""
            events[name] = NamedEvent(name, terms, scale, unit)
        return events

    def _scale(self, path: str) -> float | None:
        """A scale that cannot be read makes the event's counts meaningless, so there is no default."""
        try:
            scale = float(self._host.read_text(path) or "")
        except ValueError:
            return None
        return scale if 0 < scale < float("inf") else None

    @cached_property
    def caps(self) -> dict[str, str]:
        """What the PMU can do (`caps/slots`, `caps/branches`...), as text."""
        directory = f"{DEVICES}/{self.name}/caps"
        return {
            name: text for name in self._host.list(directory) if (text := self._host.read_text(f"{directory}/{name}"))
        }


class PmuDevices:
    """The PMUs of a host by name, and `unusable`: why others are left out, by name."""

    def __init__(self, host: HostFiles, devices: dict[str, PmuDevice], unusable: dict[str, str]) -> None:
        self.host = host
        self.devices = devices
        self.unusable = unusable

    @property
    def cores(self) -> list[PmuDevice]:
        """The PMUs of cores: one, or one a core type on a hybrid processor; none in most virtual machines."""
        return [device for device in self.devices.values() if device.is_core]

    def instances(self, name: str) -> list[PmuDevice]:
        """The PMU of that name, or all instances of that family, in the order of their numbers: `uncore_imc` → 0, 1, ... 11."""
        if device := self.devices.get(name):
            return [device]
        return sorted(
            (device for device in self.devices.values() if device.family == name),
            key=lambda device: _number(device.name),
        )

    def matching(self, accepted: "Callable[[PmuDevice], bool]") -> list[PmuDevice]:
        """The PMUs that `accepted` says yes to, by family and number."""
        return sorted(filter(accepted, self.devices.values()), key=lambda device: (device.family, _number(device.name)))


def _number(name: str) -> int:
    match = _NUMBERED.fullmatch(name)
    return int(match[2]) if match else -1


def discover(host: HostFiles) -> PmuDevices:
    """Every PMU that can be used; empty on a kernel without perf_event. One that is odd costs only itself."""
    devices: dict[str, PmuDevice] = {}
    unusable: dict[str, str] = {}
    for name in host.list(DEVICES):
        text = host.read_text(f"{DEVICES}/{name}/type")
        if text is None or not text.isdigit():
            unusable[name] = "its type cannot be read" if text is None else f"its type is {text!r}, no number"
            continue
        try:
            cpumask, cpus = _cpus(host, f"{DEVICES}/{name}/cpumask"), _cpus(host, f"{DEVICES}/{name}/cpus")
        except ValueError as error:
            unusable[name] = str(error)
            continue
        if cpumask == () or (cpumask is None and cpus == ()):
            unusable[name] = "none of its CPUs is online"
            continue
        devices[name] = PmuDevice(host, name, int(text), cpumask, cpus)
    return PmuDevices(host, devices, unusable)


def _cpus(host: HostFiles, path: str) -> tuple[int, ...] | None:
    """A list of CPUs; None without the file. Raises ValueError for a file that is there and says no list."""
    try:
        text = host.read(path).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"/{path} cannot be read: {error.strerror}") from error
    try:
        return parse_cpu_list(text)
    except ValueError as error:
        raise ValueError(f"/{path} holds no list of CPUs: {text.strip()!r}") from error
