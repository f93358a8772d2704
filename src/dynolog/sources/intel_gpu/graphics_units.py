"""The graphics units (GT) of an Intel card: clocks, idle time and reasons for low clocks.

xe: `device/tileN/gtM` (Documentation/ABI/testing/sysfs-driver-intel-xe, drivers/gpu/drm/xe/xe_gt_freq.c, xe_gt_idle.c,
xe_gt_throttle.c). i915: `card/gt/gtN` (drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c), and before 6.0 files of the card itself.
"""

import re

import msgspec

from dynolog.sources.attribute import read_integer
from dynolog.sources.drm_cards import DrmCard
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_attribute import OpenAttribute, OpenAttributes

_TILE = re.compile(r"tile\d+")
_UNIT = re.compile(r"gt\d+")
# Units of video (media) do not compute; xe names their idle state so.
_MEDIA = "-mc"


class GraphicsUnit(msgspec.Struct, frozen=True, kw_only=True):
    """One unit. Clocks in MHz; `idle_ms` counts the time in the idle state (RC6, C6). `held_back` is 1 when any reason holds."""

    name: str
    clock_mhz: OpenAttribute
    max_mhz: int | None
    idle_ms: OpenAttribute
    held_back: OpenAttribute
    reasons: dict[str, OpenAttribute]

    def files(self) -> tuple[OpenAttribute, ...]:
        """All of them."""
        return (self.clock_mhz, self.idle_ms, self.held_back, *self.reasons.values())


def find_units(host: HostFiles, card: DrmCard, files: OpenAttributes) -> list[GraphicsUnit]:
    """The units that compute or draw."""
    return _xe_units(host, card, files) if card.driver == "xe" else _i915_units(host, card, files)


def _xe_units(host: HostFiles, card: DrmCard, files: OpenAttributes) -> list[GraphicsUnit]:
    units = []
    for tile in filter(_TILE.fullmatch, host.list(card.device_folder)):
        for name in filter(_UNIT.fullmatch, host.list(f"{card.device_folder}/{tile}")):
            folder = f"{card.device_folder}/{tile}/{name}"
            if (host.read_text(f"{folder}/gtidle/name") or "").endswith(_MEDIA):
                continue
            throttle = f"{folder}/freq0/throttle"
            units.append(
                GraphicsUnit(
                    name=f"{tile}_{name}",
                    clock_mhz=files.at(host.path(f"{folder}/freq0/act_freq")),
                    max_mhz=read_integer(host.path(f"{folder}/freq0/rp0_freq")),
                    idle_ms=files.at(host.path(f"{folder}/gtidle/idle_residency_ms")),
                    held_back=files.at(host.path(f"{throttle}/status")),
                    reasons=_reasons(host, files, throttle, "reason_"),
                )
            )
    return units


def _i915_units(host: HostFiles, card: DrmCard, files: OpenAttributes) -> list[GraphicsUnit]:
    names = list(filter(_UNIT.fullmatch, host.list(f"{card.folder}/gt")))
    # i915 does not say what a unit is for: the second one of a processor is for video, that of a card is another tile.
    is_integrated = card.pci_address.endswith(":00:02.0")
    units = []
    for name in names[:1] if is_integrated else names:
        folder = f"{card.folder}/gt/{name}"
        units.append(
            GraphicsUnit(
                name=name,
                clock_mhz=files.at(host.path(f"{folder}/rps_act_freq_mhz")),
                max_mhz=read_integer(host.path(f"{folder}/rps_RP0_freq_mhz")),
                idle_ms=files.at(host.path(f"{folder}/rc6_residency_ms")),
                held_back=files.at(host.path(f"{folder}/throttle_reason_status")),
                reasons=_reasons(host, files, folder, "throttle_reason_"),
            )
        )
    return units or [_old_i915_unit(host, card, files)]


def _old_i915_unit(host: HostFiles, card: DrmCard, files: OpenAttributes) -> GraphicsUnit:
    folder = host.path(card.folder)
    return GraphicsUnit(
        name="gt0",
        clock_mhz=files.at(f"{folder}/gt_act_freq_mhz"),
        max_mhz=read_integer(f"{folder}/gt_RP0_freq_mhz"),
        idle_ms=files.at(f"{folder}/power/rc6_residency_ms"),
        held_back=files.at(f"{folder}/throttle_reason_status"),
        reasons={},
    )


def _reasons(host: HostFiles, files: OpenAttributes, folder: str, prefix: str) -> dict[str, OpenAttribute]:
    names = [name for name in host.list(folder) if name.startswith(prefix) and name != f"{prefix}status"]
    return {name.removeprefix(prefix): files.at(host.path(f"{folder}/{name}")) for name in names}
