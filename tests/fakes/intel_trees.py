"""Machines with Intel GPUs: a Max 1550 and a Flex, an Arc, and processors with graphics. Numbers are made up; shapes are the drivers'."""

from fakes.drm_tree import DrmTree

INTEL = 0x8086
GIB = 1 << 30


def _xe_unit(tree: DrmTree, folder: str, name: str, **files: str | int) -> None:
    tree.files(
        folder,
        {
            "freq0/act_freq": files.get("act", 1550), "freq0/cur_freq": 1600, "freq0/rp0_freq": 1600, "freq0/max_freq": 1600,
            "gtidle/name": name, "gtidle/idle_status": "gt-c0", "gtidle/idle_residency_ms": files.get("idle", 5000),
            "freq0/throttle/status": files.get("status", 0), "freq0/throttle/reason_pl1": files.get("pl1", 0),
            "freq0/throttle/reason_thermal": 0, "freq0/throttle/reason_prochot": 0,
        },
    )  # fmt: skip


def max_1550(tree: DrmTree) -> str:
    """Two tiles under xe; the second is held back by the power limit. Its folder."""
    tree.write("proc/sys/kernel/osrelease", "6.18.0\n")
    tree.bridge("0000:00:01.0", INTEL, max_link_speed="32.0 GT/s PCIe", max_link_width=16)
    folder = tree.pci(
        "0000:00:01.0/0000:3a:00.0", INTEL, 0x0BD5, 0x038000, "xe",
        current_link_speed="32.0 GT/s PCIe", current_link_width=16, max_link_speed="32.0 GT/s PCIe", max_link_width=16,
    )  # fmt: skip
    tree.write(f"{folder}/power/runtime_status", "active\n")
    for tile in range(2):
        _xe_unit(tree, f"{folder}/tile{tile}/gt{tile}", f"gt{tile}-rc", act=1550 - 50 * tile, status=tile, pl1=tile)
        tree.files(f"{folder}/tile{tile}", {"physical_vram_size_bytes": 64 * GIB, "memory/freq0/max_freq": 3200})
    tree.files(
        f"{folder}/hwmon/hwmon3",
        {
            "name": "xe", "energy1_label": "card", "energy1_input": 5_000_000_000, "energy2_label": "pkg", "energy2_input": 4_000_000_000,
            "power1_label": "card", "power1_max": 600_000_000, "power1_rated_max": 600_000_000, "power1_crit": 900_000_000,
            "temp2_label": "pkg", "temp2_input": 54000, "temp3_label": "vram", "temp3_input": 61000,
        },
    )  # fmt: skip
    tree.card(1, folder, render=128)
    return folder


def flex_170(tree: DrmTree) -> str:
    """A Flex under Intel's own package of i915, which says what memory is free and counts errors. Its card's folder."""
    tree.bridge("0000:00:03.0", INTEL, max_link_speed="16.0 GT/s PCIe", max_link_width=16)
    tree.bridge(
        "0000:00:03.0/0000:4a:00.0", INTEL, current_link_speed="16.0 GT/s PCIe", current_link_width=16,
        max_link_speed="16.0 GT/s PCIe", max_link_width=16,
    )  # fmt: skip
    tree.bridge("0000:00:03.0/0000:4a:00.0/0000:4b:01.0", INTEL)
    folder = tree.pci(
        "0000:00:03.0/0000:4a:00.0/0000:4b:01.0/0000:4c:00.0", INTEL, 0x56C0, 0x038000, "i915",
        # The chip's own link is to the switch on its board, and means nothing.
        current_link_speed="2.5 GT/s PCIe", current_link_width=1, max_link_speed="2.5 GT/s PCIe", max_link_width=1,
    )  # fmt: skip
    card = tree.card(2, folder, render=129)
    tree.files(card, {"lmem_total_bytes": 16 * GIB, "lmem_avail_bytes": 12 * GIB})
    tree.files(
        f"{card}/gt/gt0",
        {
            "rps_act_freq_mhz": 2050, "rps_cur_freq_mhz": 2050, "rps_RP0_freq_mhz": 2050, "rc6_residency_ms": 1000,
            "throttle_reason_status": 1, "throttle_reason_pl1": 0, "throttle_reason_thermal": 1,
            "error_counter/correctable_l3_sng": 3, "error_counter/fatal_guc": 1, "error_counter/sgunit_correctable": 2,
            "error_counter/driver_object_migration": 9,
        },
    )  # fmt: skip
    tree.files(f"{folder}/hwmon/hwmon7", {"name": "i915_gt0", "energy1_input": 1})
    tree.files(
        f"{folder}/hwmon/hwmon8",
        {
            "name": "i915", "energy1_input": 70_000_000, "power1_max": 120_000_000, "power1_rated_max": 150_000_000,
            "temp1_input": 48000, "fan1_input": 2100,
        },
    )  # fmt: skip
    return card


def arc_b580(tree: DrmTree) -> str:
    """A card for games under xe, with a unit for video beside the one that draws. Its folder."""
    folder = tree.pci(
        "0000:00:05.0/0000:05:00.0/0000:06:01.0/0000:07:00.0", INTEL, 0xE20B, 0x030000, "xe",
        current_link_speed="2.5 GT/s PCIe", current_link_width=1,
    )  # fmt: skip
    tree.bridge("0000:00:05.0", INTEL, max_link_speed="8.0 GT/s PCIe", max_link_width=8)
    tree.bridge(
        "0000:00:05.0/0000:05:00.0", INTEL, current_link_speed="8.0 GT/s PCIe", current_link_width=8,
        max_link_speed="16.0 GT/s PCIe", max_link_width=8,
    )  # fmt: skip
    tree.bridge("0000:00:05.0/0000:05:00.0/0000:06:01.0", INTEL)
    tree.write(f"{folder}/power/runtime_status", "active\n")
    _xe_unit(tree, f"{folder}/tile0/gt0", "gt0-rc", act=2850)
    _xe_unit(tree, f"{folder}/tile0/gt1", "gt1-mc", act=3333, idle=0)
    tree.files(f"{folder}/tile0", {"physical_vram_size_bytes": 12 * GIB})
    tree.files(
        f"{folder}/hwmon/hwmon2",
        {
            "name": "xe", "energy2_label": "pkg", "energy2_input": 9_000_000, "power2_label": "pkg", "power2_max": 0,
            "power2_crit": 190_000_000, "temp2_label": "pkg", "temp2_input": 39000, "fan1_input": 900,
        },
    )  # fmt: skip
    tree.card(3, folder, render=130)
    return folder


def processor_graphics(tree: DrmTree) -> str:
    """Graphics in a processor under i915: a second unit for video, no sensors, no link. Its card's folder."""
    folder = tree.pci("0000:00:02.0", INTEL, 0x7D55, 0x030000, "i915")
    card = tree.card(0, folder, render=131)
    tree.files(f"{card}/gt/gt0", {"rps_act_freq_mhz": 0, "rps_RP0_freq_mhz": 2250, "rc6_residency_ms": 100})
    tree.files(f"{card}/gt/gt1", {"rps_act_freq_mhz": 1300, "rps_RP0_freq_mhz": 1400, "rc6_residency_ms": 7})
    tree.write("usr/share/hwdata/pci.ids", "8086  Intel Corporation\n\t7d55  Meteor Lake-P [Intel Arc Graphics]\n")
    return card
