"""What the kernel does not name: events of processors by model, from data files that are read when they are needed.

Every entry says where its number was looked up; one that was found in a single place is `unverified`.
"""

import os
from collections.abc import Mapping

import msgspec

from dynolog.sources.attribute import read_attribute
from dynolog.sources.host_files import HostFiles

# Vendor, family and ranges of models (x86), or implementer and part (ARM): Intel's and AMD's models are those of the kernel's mapfile.csv
# and AMD's Processor Programming References, ARM's parts those of arch/arm64/include/asm/cputype.h.
_X86 = (
    ("intel_skylake_server", "GenuineIntel", 6, ((0x55, 0x55),)),
    ("intel_ice_lake_server", "GenuineIntel", 6, ((0x6A, 0x6A), (0x6C, 0x6C))),
    ("intel_sapphire_rapids", "GenuineIntel", 6, ((0x8F, 0x8F), (0xCF, 0xCF))),
    ("intel_granite_rapids", "GenuineIntel", 6, ((0xAD, 0xAE),)),
    ("intel_sierra_forest", "GenuineIntel", 6, ((0xAF, 0xAF),)),
    ("amd_zen1", "AuthenticAMD", 0x17, ((0x00, 0x2F),)),
    ("amd_zen2", "AuthenticAMD", 0x17, ((0x30, 0xFF),)),
    ("amd_zen3", "AuthenticAMD", 0x19, ((0x00, 0x0F), (0x20, 0x5F))),
    ("amd_zen4", "AuthenticAMD", 0x19, ((0x10, 0x1F), (0x60, 0xAF))),
    ("amd_zen5", "AuthenticAMD", 0x1A, ((0x00, 0x4F), (0x60, 0x7F))),
)
_ARM = {
    ("0x41", "0xd0c"): "arm_neoverse_n1",
    ("0x41", "0xd40"): "arm_neoverse_v1",
    ("0x41", "0xd49"): "arm_neoverse_n2",
    ("0x41", "0xd4f"): "arm_neoverse_v2",  # NVIDIA Grace too
}
NAMES = (*(name for name, *_ in _X86), *_ARM.values())


class TableEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event as `pmu/terms/`, what it counts, and the documents that its number is from."""

    event: str
    description: str
    sources: tuple[str, ...]

    @property
    def verified(self) -> bool:
        """Two independent places agree."""
        return len(self.sources) > 1


class PmuTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one kind of processor.

    `operations` is how many floating-point operations one count of an event stands for; `read_bytes`, `write_bytes` and `moved_bytes`
    (either way) the bytes of memory traffic. `dispatch_slots` is the operations that can be
    dispatched in a cycle, 0 where they are not counted.
    """

    name: str
    events: dict[str, TableEvent] = {}
    operations: dict[str, float] = {}
    read_bytes: dict[str, float] = {}
    write_bytes: dict[str, float] = {}
    moved_bytes: dict[str, float] = {}
    dispatch_slots: int = 0
    dispatch_slots_sources: tuple[str, ...] = ()

    @property
    def named(self) -> Mapping[str, str]:
        """The events as further names for `parse_event`."""
        return {name: entry.event for name, entry in self.events.items()}


NO_TABLE = PmuTable("")


def load(name: str) -> PmuTable:
    """The table of one of `NAMES`."""
    with open(os.path.join(os.path.dirname(__file__), f"{name}.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=PmuTable)


def table_of(host: HostFiles) -> PmuTable:
    """The table of this host's processor; NO_TABLE for one that is not known, which then has the events that the kernel names."""
    name = identify(_first_processor(host))
    return load(name) if name else NO_TABLE


def _first_processor(host: HostFiles) -> dict[str, str]:
    """The first lines of `/proc/cpuinfo`: the whole file takes tens of ms on hundreds of CPUs."""
    text = (read_attribute(host.path("proc/cpuinfo")) or b"").decode("utf-8", "replace")
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields


def identify(processor: Mapping[str, str]) -> str:
    """The table's name for fields of `/proc/cpuinfo`, "" for a processor without one."""
    if part := processor.get("CPU part"):
        return _ARM.get((processor.get("CPU implementer", ""), part), "")
    family, model = processor.get("cpu family", ""), processor.get("model", "")
    if not (family.isdigit() and model.isdigit()):
        return ""
    for name, vendor, table_family, models in _X86:
        same = processor.get("vendor_id") == vendor and int(family) == table_family
        if same and any(low <= int(model) <= high for low, high in models):
            return name
    return ""
