"""Machines with AMD accelerators: an MI250, eight MI300X, and a Radeon for games. Numbers are made up; shapes are the drivers'."""

from fakes.amdgpu_tables import table
from fakes.drm_tree import DrmTree, Files

AMD = 0x1002
GIB = 1 << 30


def kfd_node(
    tree: DrmTree, number: int, gpu_id: int, location: int, *, render: int, xgmi: list[int], vram: int
) -> None:
    """A GPU of the compute driver; `xgmi` are the numbers of the nodes that it has an XGMI link to, and node 0 hangs on PCIe."""
    folder = f"sys/class/kfd/kfd/topology/nodes/{number}"
    tree.files(
        folder,
        {
            "gpu_id": gpu_id,
            "name": "ip discovery",
            "properties": f"cpu_cores_count 0\nsimd_count 440\nlocation_id {location}\ndomain 0\ndrm_render_minor {render}\n"
            "unique_id 17264713473402352190\nnum_xcc 1",
            "mem_banks/0/properties": f"heap_type 1\nsize_in_bytes {vram}\nflags 0\nwidth 8192\nmem_clk_max 1300",
            "io_links/0/properties": f"type 2\nversion_major 0\nnode_from {number}\nnode_to 0\nweight 20",
        },
    )
    for place, other in enumerate(xgmi, 1):
        tree.files(
            f"{folder}/io_links/{place}", {"properties": f"type 11\nnode_from {number}\nnode_to {other}\nweight 15"}
        )


def kfd_process(tree: DrmTree, pid: int, vram: dict[int, int]) -> None:
    """A compute program with its memory by `gpu_id`."""
    tree.files(f"sys/class/kfd/kfd/proc/{pid}", {f"vram_{gpu_id}": used for gpu_id, used in vram.items()})
    tree.files(f"sys/class/kfd/kfd/proc/{pid}", {"pasid": 32771})


def kfd_host(tree: DrmTree, generation: int = 3) -> None:
    """The parts that every machine with the compute driver has: node 0 is the processor."""
    tree.files("sys/class/kfd/kfd/topology", {"generation_id": generation, "nodes/0/gpu_id": 0})
    tree.files("sys/class/kfd/kfd/topology/nodes/0", {"properties": "cpu_cores_count 64\nlocation_id 0"})
    (tree.root / "sys/class/kfd/kfd/proc").mkdir(parents=True, exist_ok=True)
    tree.write("proc/sys/kernel/osrelease", "6.18.0\n")


MI250_SENSORS: Files = {
    "name": "amdgpu",
    "temp1_label": "edge", "temp1_input": 41000, "temp1_crit": 100000,
    "temp2_label": "junction", "temp2_input": 47000, "temp2_crit": 105000,
    "temp3_label": "mem", "temp3_input": 52000, "temp3_crit": 95000,
    "power1_label": "PPT", "power1_average": 304000000, "power1_cap": 560000000, "power1_cap_max": 560000000,
    "freq1_label": "sclk", "freq1_input": 1700000000, "freq2_label": "mclk", "freq2_input": 1600000000,
}  # fmt: skip


def mi250(tree: DrmTree) -> None:
    """One package with two dies, each a card of its own. Power is measured on the first alone."""
    kfd_host(tree)
    for die, bus in enumerate(("29", "2a")):
        tree.bridge(f"0000:00:0{die + 1}.1", max_link_speed="16.0 GT/s PCIe", max_link_width=16)
        folder = tree.pci(
            f"0000:00:0{die + 1}.1/0000:{bus}:00.0", AMD, 0x740C, 0x038000, "amdgpu",
            unique_id=f"bd8a5f9c3e02a1b{die}", product_name="AMD INSTINCT MI250 (MCM) OAM AC MBA",
            gpu_busy_percent=93 - die, mem_busy_percent=35,
            mem_info_vram_total=64 * GIB, mem_info_vram_used=48 * GIB + die, mem_info_gtt_total=256 * GIB, mem_info_gtt_used=16 << 20,
            pp_dpm_sclk="0: 500Mhz\n1: 800Mhz\n2: 1700Mhz *", pp_dpm_mclk="0: 400Mhz\n1: 1600Mhz *",
            current_link_speed="16.0 GT/s PCIe", current_link_width=16, max_link_speed="16.0 GT/s PCIe", max_link_width=16,
            pcie_replay_count=2 * die,
        )  # fmt: skip
        tree.write(f"{folder}/power/runtime_status", "active\n")
        tree.files(f"{folder}/xgmi_hive_info", {"xgmi_hive_id": "7463142378451112233"})
        tree.files(f"{folder}/ras", {"umc_err_count": "ue: 0\nce: 0", "gfx_err_count": "ue: 0\nce: 0"})
        tree.files(f"{folder}/hwmon/hwmon{die + 4}", MI250_SENSORS)
        energy = 0 if die else 65536 * 1000
        tree.write(
            f"{folder}/gpu_metrics",
            table((1, 3), {"energy_accumulator": energy, "indep_throttle_status": 1 if die == 0 else 1 << 34}),
        )
        if die == 1:
            tree.files(f"{folder}/hwmon/hwmon5", {"power1_average": 0, "power1_cap": 0, "power1_cap_max": 0})
        tree.card(die + 1, folder, render=128 + die)
        kfd_node(tree, die + 1, 1000 + die, int(bus, 16) << 8, render=128 + die, xgmi=[2 - die], vram=64 * GIB)
    # A server's own graphics, of another maker, is card0.
    aspeed = tree.pci("0000:00:1f.0", 0x1A03, 0x2000, 0x030000, "ast")
    tree.card(0, aspeed, render=127)
    kfd_process(tree, 4242, {1000: 47 * GIB, 1001: 0})


def mi300_table(step: int, **changes: int | list[int]) -> bytes:
    """The table of an MI300X after `step` seconds of one kind of work: 700 J, 2 GB read and 1 GB written on each XGMI link, and 0.2 s
    in which the power limit held the clocks back.
    """
    read_kb, write_kb = 2_000_000 * step, 1_000_000 * step
    fields: dict[str, int | list[int]] = {
        "curr_socket_power": 700, "temperature_hotspot": 66, "average_gfx_activity": 98,
        "energy_accumulator": 65536 * 700 * step, "accumulation_counter": 1000 * step,
        "prochot_residency_acc": 0, "ppt_residency_acc": 200 * step, "socket_thm_residency_acc": 0,
        "pcie_replay_count_acc": 11,
        "xgmi_read_data_acc": [0xFFFFFFFFFFFFFFFF] + [read_kb] * 7, "xgmi_write_data_acc": [0xFFFFFFFFFFFFFFFF] + [write_kb] * 7,
        "xgmi_link_status": [2, 1, 1, 1, 0, 1, 1, 1],
        "current_gfxclk": [2100, 2099, 2098, 2100, 2097, 2100, 2100, 2100], "current_uclk": 1300, "num_partition": 1,
    }  # fmt: skip
    fields.update(changes)
    return table((1, 7), fields, {0: [98] * 8})


def mi300x(tree: DrmTree, number: int, bus: int) -> str:
    """One of eight: no edge sensor, instantaneous power, its clocks in the table alone. Its folder."""
    bridge = f"0000:00:{number:02x}.1"
    tree.bridge(bridge, max_link_speed="32.0 GT/s PCIe", max_link_width=16)
    folder = tree.pci(
        f"{bridge}/0000:{bus:02x}:00.0", AMD, 0x74A1, 0x120000, "amdgpu",
        unique_id=f"d4b1c2a3e5f6071{number}", product_name="AMD Instinct MI300X OAM",
        gpu_busy_percent=90 + number, mem_busy_percent=40, mem_info_vram_total=192 * GIB, mem_info_vram_used=(20 + number) * GIB,
        pp_dpm_sclk="0: 500Mhz *\n1: 132Mhz\n2: 2100Mhz", pp_dpm_mclk="0: 900Mhz\n1: 1300Mhz",
        current_link_speed="32.0 GT/s PCIe", current_link_width=16, max_link_speed="32.0 GT/s PCIe", max_link_width=16,
        current_compute_partition="SPX", current_memory_partition="NPS1",
    )  # fmt: skip
    tree.write(f"{folder}/power/runtime_status", "active\n")
    tree.files(
        f"{folder}/hwmon/hwmon{number + 3}",
        {
            "name": "amdgpu", "temp2_label": "junction", "temp2_input": 60000 + 1000 * number, "temp2_crit": 100000,
            "temp3_label": "mem", "temp3_input": 55000, "power1_input": 650000000, "power1_cap": 750000000,
            "power1_cap_max": 750000000,
        },
    )  # fmt: skip
    tree.files(f"{folder}/ras", {"umc_err_count": "ue: 0\nce: 0\nde: 0", "gpu_vram_bad_pages": ""})
    tree.files(f"{folder}/xgmi_hive_info", {"xgmi_hive_id": "1234"})
    tree.write(f"{folder}/gpu_metrics", mi300_table(1))
    tree.card(number + 1, folder, render=128 + 8 * number)
    return folder


BUSES = (0x0C, 0x22, 0x38, 0x5C, 0x9F, 0xAF, 0xBF, 0xDF)


def mi300x_eight(tree: DrmTree) -> list[str]:
    """Eight in one hive; the third has had memory errors. Their folders."""
    kfd_host(tree)
    folders = [mi300x(tree, number, bus) for number, bus in enumerate(BUSES)]
    for number, bus in enumerate(BUSES):
        others = [other + 1 for other in range(8) if other != number]
        kfd_node(tree, number + 1, 2000 + number, bus << 8, render=128 + 8 * number, xgmi=others, vram=192 * GIB)
    tree.files(
        f"{folders[2]}/ras",
        {
            "umc_err_count": "ue: 1\nce: 14\nde: 2", "gfx_err_count": "ue: 0\nce: 3", "vcn_err_count": "Query currently inaccessible",
            "gpu_vram_bad_pages": "0x00000a01 : 0x00001000 : R\n0x00000a02 : 0x00001000 : P\n0x00000a03 : 0x00001000 : R",
        },
    )  # fmt: skip
    return folders


def radeon(tree: DrmTree) -> str:
    """A card for games behind the switch of its own board, in a slot with 8 lanes of PCIe 3. Many files are missing. Its folder."""
    tree.write("proc/sys/kernel/osrelease", "6.18.0\n")
    tree.bridge("0000:00:01.0", max_link_speed="8.0 GT/s PCIe", max_link_width=16)
    tree.bridge(
        "0000:00:01.0/0000:01:00.0", AMD, current_link_speed="8.0 GT/s PCIe", current_link_width=8,
        max_link_speed="16.0 GT/s PCIe", max_link_width=16,
    )  # fmt: skip
    tree.bridge("0000:00:01.0/0000:01:00.0/0000:02:00.0", AMD)
    folder = tree.pci(
        "0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", AMD, 0x73DF, 0x030000, "amdgpu",
        gpu_busy_percent=7, mem_info_vram_total=12 * GIB, mem_info_vram_used=1 * GIB,
        pp_dpm_sclk="0: 500Mhz *\n1: 2725Mhz", pp_dpm_mclk="0: 96Mhz *\n1: 1000Mhz",
        current_link_speed="16.0 GT/s PCIe", current_link_width=16, max_link_speed="16.0 GT/s PCIe", max_link_width=16,
    )  # fmt: skip
    tree.files(
        f"{folder}/hwmon/hwmon2",
        {
            "name": "amdgpu", "temp1_label": "edge", "temp1_input": 44000, "temp1_crit": 100000, "power1_average": 31000000,
            "power1_cap": 186000000, "fan1_input": 0, "pwm1": 51, "pwm1_max": 255,
        },
    )  # fmt: skip
    tree.card(0, folder, render=128)
    tree.write(
        "usr/share/misc/pci.ids",
        "# a comment\n1001  Kolter\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t73df  Navi 22 [Radeon RX 6700]\n"
        "\t\t1002 0e36  Radeon RX 6700 XT\n\t744c  Navi 31\n1003  ULSI\n\t73df  Not this one\n",
    )
    return folder
