"""The events that a person or a metric set names, as what the kernel is to count (the notation is that of perf-list(1))."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from dynolog.model.errors import DynologError
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.attributes import EventSpec, EventType
from dynolog.sources.pmu_devices import PmuDevice, PmuDevices
from dynolog.sources.pmu_format import WORDS
from dynolog.sources.pmu_names import CACHE, HARDWARE, SOFTWARE

TRACEFS = ("sys/kernel/tracing", "sys/kernel/debug/tracing")
_OF_A_PMU = re.compile(r"([A-Za-z0-9_.-]+)/([^/]*)/(?::?([a-zA-Z]*))?")
_RAW = re.compile(r"r([0-9a-fA-F]{1,16})")
_TRACEPOINT = re.compile(r"([A-Za-z0-9_-]+):([A-Za-z0-9_.:-]+)")
_MODIFIERS = frozenset("ukhGH")
# The number of the PMU above the generic id says which core type is meant (Linux 5.13).
_PMU_TYPE_SHIFT = 32


class UnknownEvent(DynologError):  # noqa: N818 - it is a state of the world, said once
    """A text that names no event of this machine; the sentence says what is near."""


class Modifiers(msgspec.Struct, frozen=True):
    """Which contexts do not count: `cycles:u` is user space only."""

    exclude_user: bool = False
    exclude_kernel: bool = False
    exclude_hv: bool = False


def parse_modifiers(text: str) -> Modifiers:
    """`u` user, `k` kernel, `h` hypervisor; G and H are taken and ignored. Raises ValueError for other letters."""
    if set(text) - _MODIFIERS:
        raise ValueError(f"{text!r} is no modifier: u, k and h are")
    if not set(text) & set("ukh"):
        return Modifiers()
    return Modifiers("u" not in text, "k" not in text, "h" not in text)


def split_events(text: str) -> list[str]:
    """A comma list of events; commas between slashes belong to the event."""
    parts: list[str] = []
    current, inside = "", False
    for char in text:
        if char == "/":
            inside = not inside
        if char == "," and not inside:
            parts.append(current)
            current = ""
        else:
            current += char
    parts.append(current)
    return [part.strip() for part in parts if part.strip()]


def parse_event(text: str, devices: PmuDevices, named: Mapping[str, str] | None = None) -> tuple[EventSpec, ...]:
    """What to open for an event: one EventSpec, or one for each PMU that it means (core types, memory channels).

    `named` are further names, from a table of the processor, each with its `pmu/terms/`. Raises UnknownEvent.
    """
    text = text.strip()
    if match := _OF_A_PMU.fullmatch(text):
        return _of_a_pmu(text, match[1], match[2], _modifiers(text, match[3] or ""), devices)
    base, _, letters = text.partition(":")
    if (base in HARDWARE or base in CACHE or base in SOFTWARE or _RAW.fullmatch(base)) and not set(
        letters
    ) - _MODIFIERS:
        return _generic(text, base, _modifiers(text, letters), devices)
    is_modified = not set(letters) - _MODIFIERS
    if named and base in named and is_modified:
        return tuple(msgspec.structs.replace(spec, name=text) for spec in parse_event(named[base] + letters, devices))
    of_cores = any(base in core.events for core in devices.cores) and is_modified
    if not of_cores and (match := _TRACEPOINT.fullmatch(text)):
        return (_tracepoint(text, match[1], match[2], devices.host),)
    return _by_bare_name(text, devices, named or {})


def _modifiers(text: str, letters: str) -> Modifiers:
    try:
        return parse_modifiers(letters)
    except ValueError as error:
        raise UnknownEvent(f"{text}: {error}") from error


def _generic(text: str, base: str, modifiers: Modifiers, devices: PmuDevices) -> tuple[EventSpec, ...]:
    if base in SOFTWARE:
        unit = "ns" if base.endswith("-clock") else ""
        return (_spec(text, EventType.SOFTWARE, {"config": SOFTWARE[base]}, modifiers, unit=unit),)
    cores = devices.cores
    if raw := _RAW.fullmatch(base) if base not in HARDWARE and base not in CACHE else None:
        words = {"config": int(raw[1], 16)}
        if not cores:
            return (_spec(text, EventType.RAW, words, modifiers),)
        return tuple(_spec(text, core.type, words, modifiers, core) for core in cores)
    kind = EventType.HARDWARE if base in HARDWARE else EventType.HW_CACHE
    config = HARDWARE[base] if base in HARDWARE else CACHE[base]
    if len(cores) < 2:
        return (_spec(text, kind, {"config": config}, modifiers, cores[0] if cores else None),)
    return tuple(
        _spec(text, kind, {"config": config | core.type << _PMU_TYPE_SHIFT}, modifiers, core) for core in cores
    )


def _spec(
    name: str,
    type_number: int,
    words: Mapping[str, int],
    modifiers: Modifiers,
    device: PmuDevice | None = None,
    *,
    scale: float = 1.0,
    unit: str = "",
) -> EventSpec:
    return EventSpec(
        name=name,
        type=int(type_number),
        config=words.get("config", 0),
        config1=words.get("config1", 0),
        config2=words.get("config2", 0),
        config3=words.get("config3", 0),
        exclude_user=modifiers.exclude_user,
        exclude_kernel=modifiers.exclude_kernel,
        exclude_hv=modifiers.exclude_hv,
        scale=scale,
        unit=unit,
        pmu=device.name if device else "",
        cpus=device.where if device else None,
        core_type=device.core_type if device else "",
    )


def _of_a_pmu(text: str, pmu: str, terms: str, modifiers: Modifiers, devices: PmuDevices) -> tuple[EventSpec, ...]:
    instances = devices.instances(pmu)
    if not instances and pmu == "cpu":
        instances = devices.cores  # as on every processor with one PMU named so: hybrid ones have cpu_core and cpu_atom
    if not instances:
        if pmu in devices.unusable:
            raise UnknownEvent(f"{text}: {pmu} cannot be used: {devices.unusable[pmu]}")
        names = [*devices.devices, *{device.family for device in devices.devices.values()}]
        raise UnknownEvent(f"{text}: this machine has no PMU {pmu!r}{_nearest(pmu, names)}")
    return tuple(_encode(text, device, terms, modifiers) for device in instances)


def _encode(text: str, device: PmuDevice, terms: str, modifiers: Modifiers) -> EventSpec:
    fields: dict[str, int] = {}
    scale, unit = 1.0, ""
    for term in filter(None, (part.strip() for part in terms.split(","))):
        name, equals, _ = term.partition("=")
        if not equals and name not in device.formats and (event := device.events.get(name)):
            scale, unit = event.scale, event.unit
            fields.update(_fields(text, event.terms, device))
        elif not equals and name not in device.formats and name not in WORDS:
            raise UnknownEvent(
                f"{text}: {device.name} has no event {name!r}{_nearest(name, [*device.events, *device.formats])}"
            )
        else:
            fields.update(_fields(text, term, device))
    words = dict.fromkeys(WORDS, 0)
    for name, number in fields.items():
        if name in WORDS:
            words[name] |= number
            continue
        place = device.formats[name]
        try:
            words[place.word] |= place.place(number)
        except ValueError as error:
            raise UnknownEvent(f"{text}: {name}: {error}") from error
    return _spec(text, device.type, words, modifiers, device, scale=scale, unit=unit)


def _fields(text: str, terms: str, device: PmuDevice) -> dict[str, int]:
    """The fields of terms such as `event=0x2e,umask=0x41,inv`; the last of a name counts."""
    fields: dict[str, int] = {}
    for term in filter(None, (part.strip() for part in terms.split(","))):
        name, equals, value = term.partition("=")
        if name not in device.formats and name not in WORDS:
            known = [*device.formats, *WORDS]
            raise UnknownEvent(f"{text}: {device.name} has no field {name!r}{_nearest(name, known)}")
        if value == "?":
            raise UnknownEvent(f"{text}: say a value for {name}, as in {name}=1")
        fields[name] = _number(text, name, value) if equals else 1
    return fields


def _number(text: str, name: str, value: str) -> int:
    try:
        number = int(value, 0) if value.lower().startswith("0x") else int(value)
    except ValueError:
        number = -1
    if number < 0 or number >> 64:
        raise UnknownEvent(f"{text}: {name}={value}: a number of at most 64 bits belongs there, such as 12 or 0xc")
    return number


def _tracepoint(text: str, category: str, name: str, host: HostFiles) -> EventSpec:
    for root in TRACEFS:
        if number := host.read_text(f"{root}/events/{category}/{name}/id"):
            return _spec(text, EventType.TRACEPOINT, {"config": int(number)}, Modifiers())
    for root in TRACEFS:
        if names := host.list(f"{root}/events/{category}"):
            raise UnknownEvent(f"{text}: {category} has no tracepoint {name!r}{_nearest(name, names)}")
        if categories := host.list(f"{root}/events"):
            raise UnknownEvent(f"{text}: there are no tracepoints {category}:{_nearest(category, categories)}")
    raise UnknownEvent(
        f"{text}: tracepoints cannot be seen: mount them (mount -t tracefs tracefs /sys/kernel/tracing) and run as root"
    )


def _by_bare_name(text: str, devices: PmuDevices, named: Mapping[str, str]) -> tuple[EventSpec, ...]:
    """A name that some PMU has, the cores' first: `topdown-retiring`, `stall_frontend`, `energy-pkg`."""
    base, _, letters = text.partition(":")
    modifiers = _modifiers(text, letters)
    found = [device for device in devices.cores if base in device.events]
    found = found or [device for device in devices.devices.values() if base in device.events]
    if found:
        return tuple(_encode(text, device, base, modifiers) for device in found)
    names: Iterable[str] = (*HARDWARE, *SOFTWARE, *CACHE, *named, *(e for d in devices.cores for e in d.events))
    raise UnknownEvent(f"{text}: no such event{_nearest(base, list(names))}; `dyno perf list` shows all")


def _nearest(word: str, names: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only for an error; costs 3 ms

    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=2, cutoff=0.5)
    return f": did you mean {' or '.join(by_lower[name] for name in near)}?" if near else ""
