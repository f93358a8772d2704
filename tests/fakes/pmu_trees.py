"""`/sys/bus/event_source` of machines that are not here, made from what their drivers publish (arch/x86/events, drivers/perf)."""

from pathlib import Path

DEVICES = "sys/bus/event_source/devices"
_INTEL_CORE = {
    "event": "config:0-7",
    "umask": "config:8-15",
    "edge": "config:18",
    "pc": "config:19",
    "inv": "config:23",
    "cmask": "config:24-31",
    "in_tx": "config:32",
    "in_tx_cp": "config:33",
    "offcore_rsp": "config1:0-63",
    "ldlat": "config1:0-15",
    "frontend": "config1:0-23",
}
_INTEL_EVENTS = {
    "cpu-cycles": "event=0x3c",
    "instructions": "event=0xc0",
    "cache-references": "event=0x2e,umask=0x4f",
    "cache-misses": "event=0x2e,umask=0x41",
    "branch-instructions": "event=0xc4",
    "branch-misses": "event=0xc5",
    "bus-cycles": "event=0x3c,umask=0x01",
    "ref-cycles": "event=0x00,umask=0x03",
    "mem-loads": "event=0xcd,umask=0x01,ldlat=3",
    "mem-stores": "event=0xcd,umask=0x02",
}
_TOPDOWN = {
    "slots": "event=0x00,umask=0x4",
    "topdown-retiring": "event=0x00,umask=0x80",
    "topdown-bad-spec": "event=0x00,umask=0x81",
    "topdown-fe-bound": "event=0x00,umask=0x82",
    "topdown-be-bound": "event=0x00,umask=0x83",
    "topdown-heavy-ops": "event=0x00,umask=0x84",
    "topdown-br-mispredict": "event=0x00,umask=0x85",
    "topdown-fetch-lat": "event=0x00,umask=0x86",
    "topdown-mem-bound": "event=0x00,umask=0x87",
}
_CAS = {
    "clockticks": "event=0x01,umask=0x00",
    "cas_count_read": "event=0x05,umask=0xcf",
    "cas_count_read.scale": "6.103515625e-5",
    "cas_count_read.unit": "MiB",
    "cas_count_write": "event=0x05,umask=0xf0",
    "cas_count_write.scale": "6.103515625e-5",
    "cas_count_write.unit": "MiB",
}
_JOULES = {"scale": "2.3283064365386962890625e-10", "unit": "Joules"}


def _energy(**domains: str) -> dict[str, str]:
    events: dict[str, str] = {}
    for domain, code in domains.items():
        events[f"energy-{domain}"] = f"event={code}"
        events |= {f"energy-{domain}.{about}": text for about, text in _JOULES.items()}
    return events


def _residencies(**states: str) -> dict[str, str]:
    return {f"{state}-residency": f"event={code}" for state, code in states.items()}


class PmuTree:
    """Writes PMUs below a root directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def pmu(
        self,
        name: str,
        type_number: int | str,
        formats: dict[str, str] | None = None,
        events: dict[str, str] | None = None,
        **files: str,
    ) -> None:
        """One PMU; `files` are further attributes such as cpumask and cpus."""
        self.write(f"{DEVICES}/{name}/type", str(type_number))
        for directory, entries in (("format", formats), ("events", events)):
            for entry, text in (entries or {}).items():
                self.write(f"{DEVICES}/{name}/{directory}/{entry}", text)
        for file, text in files.items():
            self.write(f"{DEVICES}/{name}/{file}", text)

    def every_kernel_has(self, online: str) -> None:
        self.pmu("software", 1)
        self.pmu("tracepoint", 2)
        self.pmu("breakpoint", 5)
        self.write("sys/devices/system/cpu/online", online)
        self.write("sys/kernel/tracing/events/sched/sched_switch/id", "316")
        self.write("sys/kernel/tracing/events/sched/sched_wakeup/id", "318")
        self.write("proc/sys/kernel/perf_event_paranoid", "2")

    def intel_or_amd(self, vendor: str, family: int, model: int) -> None:
        """The first processor of /proc/cpuinfo."""
        self.write(
            "proc/cpuinfo",
            f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: x",
        )

    def arm(self, implementer: str, part: str) -> None:
        """The first processor of /proc/cpuinfo."""
        self.write(
            "proc/cpuinfo", f"processor\t: 0\nCPU implementer\t: {implementer}\nCPU architecture: 8\nCPU part\t: {part}"
        )


def sapphire_rapids(root: Path) -> PmuTree:
    """Two sockets of 56 cores, SMT: CPUs 0-111 and 112-223 are the siblings; eight memory controllers a socket."""
    tree = PmuTree(root)
    tree.every_kernel_has("0-223")
    tree.intel_or_amd("GenuineIntel", 6, 143)
    tree.pmu("cpu", 4, _INTEL_CORE, _INTEL_EVENTS | _TOPDOWN)
    tree.write(f"{DEVICES}/cpu/caps/max_precise", "3")
    uncore = {
        "event": "config:0-7",
        "umask": "config:8-15",
        "edge": "config:18",
        "inv": "config:23",
        "thresh": "config:24-31",
    }
    for number in range(12):
        tree.pmu(f"uncore_imc_{number}", 30 + number, uncore, _CAS, cpumask="0,56")
    for number in range(60):
        tree.pmu(f"uncore_cha_{number}", 60 + number, uncore | {"umask": "config:8-15,32-57"}, cpumask="0,56")
    tree.pmu("power", 17, {"event": "config:0-7"}, _energy(pkg="0x02", ram="0x03"), cpumask="0,56")
    tree.pmu("cstate_core", 18, {"event": "config:0-63"}, _residencies(c1="0x00", c6="0x02"), cpumask="0-111")
    tree.pmu("cstate_pkg", 19, {"event": "config:0-63"}, _residencies(c2="0x00", c6="0x02"), cpumask="0,56")
    tree.pmu("msr", 16, {"event": "config:0-63"}, {"tsc": "event=0x00", "aperf": "event=0x01", "smi": "event=0x04"})
    return tree


def hybrid_client(root: Path) -> PmuTree:
    """Eight performance cores with SMT (CPUs 0-15) and eight efficient ones (16-23); free-running memory counters."""
    tree = PmuTree(root)
    tree.every_kernel_has("0-23")
    tree.intel_or_amd("GenuineIntel", 6, 151)
    tree.pmu("cpu_core", 4, _INTEL_CORE, _INTEL_EVENTS | _TOPDOWN, cpus="0-15")
    atom = {name: text for name, text in _INTEL_EVENTS.items() if name != "mem-loads"} | {
        "mem-loads": "event=0xd0,umask=0x5,ldlat=3",
        "topdown-retiring": "event=0xc2,umask=0x0",
        "topdown-bad-spec": "event=0x73,umask=0x0",
        "topdown-fe-bound": "event=0x71,umask=0x0",
        "topdown-be-bound": "event=0x74,umask=0x0",
    }
    tree.pmu("cpu_atom", 10, _INTEL_CORE, atom, cpus="16-23")
    free = {
        f"data_{way}{about}": text
        for way, code in (("read", "0x20"), ("write", "0x30"))
        for about, text in (("", f"event=0xff,umask={code}"), (".scale", "6.103515625e-5"), (".unit", "MiB"))
    }
    for number in range(2):
        tree.pmu(
            f"uncore_imc_free_running_{number}",
            20 + number,
            {"event": "config:0-7", "umask": "config:8-15"},
            free,
            cpumask="0",
        )
    tree.pmu("power", 25, {"event": "config:0-7"}, _energy(pkg="0x02", cores="0x01", gpu="0x04"), cpumask="0")
    tree.pmu(
        "cstate_core", 26, {"event": "config:0-63"}, _residencies(c1="0x00", c6="0x02", c7="0x03"), cpumask="0,2,4"
    )
    tree.pmu("msr", 16, {"event": "config:0-63"}, {"tsc": "event=0x00"})
    return tree


def zen4(root: Path) -> PmuTree:
    """Two sockets of 96 cores; twelve memory channels each, read through the channel's own PMU."""
    tree = PmuTree(root)
    tree.every_kernel_has("0-383")
    tree.intel_or_amd("AuthenticAMD", 25, 17)
    core = {
        "event": "config:0-7,32-35",
        "umask": "config:8-15",
        "edge": "config:18",
        "inv": "config:23",
        "cmask": "config:24-31",
    }
    events = {
        "cpu-cycles": "event=0x76",
        "instructions": "event=0xc0",
        "branch-instructions": "event=0xc2",
        "branch-misses": "event=0xc3",
        "cache-references": "event=0x60,umask=0xff",
        "cache-misses": "event=0x64,umask=0x09",
        "stalled-cycles-frontend": "event=0xa9",
    }
    tree.pmu("cpu", 4, core, events)
    tree.write(f"{DEVICES}/cpu/caps/branches", "16")
    tree.pmu("amd_df", 12, {"event": "config:0-7,32-37", "umask": "config:8-15,24-27"}, cpumask="0,96")
    l3 = {"event": "config:0-7", "umask": "config:8-15", "coreid": "config:42-44", "threadmask": "config:56-57"}
    tree.pmu("amd_l3", 11, l3, cpumask=",".join(str(cpu) for cpu in range(0, 192, 8)))
    for number in range(24):
        tree.pmu(
            f"amd_umc_{number}",
            20 + number,
            {"event": "config:0-7", "rdwrmask": "config:8-9"},
            cpumask="0" if number < 12 else "96",
        )
    tree.pmu("power", 14, {"event": "config:0-7"}, _energy(pkg="0x02"), cpumask="0,96")
    tree.pmu("msr", 13, {"event": "config:0-63"}, {"tsc": "event=0x00", "aperf": "event=0x01", "mperf": "event=0x02"})
    return tree


_ARM_EVENTS = {
    "cpu_cycles": "event=0x0011",
    "inst_retired": "event=0x0008",
    "br_mis_pred": "event=0x0010",
    "br_pred": "event=0x0012",
    "br_retired": "event=0x0021",
    "br_mis_pred_retired": "event=0x0022",
    "l1d_cache": "event=0x0004",
    "l1d_cache_refill": "event=0x0003",
    "l2d_cache": "event=0x0016",
    "l2d_cache_refill": "event=0x0017",
    "ll_cache_rd": "event=0x0036",
    "ll_cache_miss_rd": "event=0x0037",
    "l1d_tlb": "event=0x0025",
    "l1d_tlb_refill": "event=0x0005",
    "l1i_tlb": "event=0x0026",
    "l1i_tlb_refill": "event=0x0002",
    "dtlb_walk": "event=0x0034",
    "itlb_walk": "event=0x0035",
    "stall_frontend": "event=0x0023",
    "stall_backend": "event=0x0024",
    "op_retired": "event=0x003a",
    "op_spec": "event=0x003b",
    "stall": "event=0x003c",
    "stall_slot_backend": "event=0x003d",
    "stall_slot_frontend": "event=0x003e",
    "stall_slot": "event=0x003f",
}
_ARM_CORE = {"event": "config:0-15", "long": "config1:0", "rdpmc": "config1:1"}


def grace(root: Path) -> PmuTree:
    """NVIDIA Grace: 72 Neoverse V2 cores and the scalable coherency fabric's PMU."""
    tree = PmuTree(root)
    tree.every_kernel_has("0-71")
    tree.arm("0x41", "0xd4f")
    tree.pmu("armv8_pmuv3_0", 10, _ARM_CORE, _ARM_EVENTS, cpus="0-71")
    tree.write(f"{DEVICES}/armv8_pmuv3_0/caps/slots", "0x00000008")
    fabric = {
        "bus_cycles": "event=0x1d",
        "cmem_rd_data": "event=0x1a5",
        "cmem_rd_access": "event=0x1a6",
        "cmem_wb_data": "event=0x1ab",
        "cmem_wb_access": "event=0x1ac",
        "cmem_wr_data": "event=0x1b1",
        "cmem_wr_total_bytes": "event=0x1db",
        "cycles": "event=0x100000000",
    }
    tree.pmu(
        "nvidia_scf_pmu_0",
        12,
        {"event": "config:0-32", "src_mask": "config1:0-31"},
        fabric,
        cpumask="0",
        associated_cpus="0-71",
    )
    return tree


def odd(root: Path) -> PmuTree:
    """A machine with everything that has gone wrong: E09, E10."""
    tree = PmuTree(root)
    tree.every_kernel_has("0-3")
    tree.arm("0x99", "0x123")
    tree.pmu("armv8_pmuv3_0", 8, _ARM_CORE, {"cpu_cycles": "event=0x0011", "inst_retired": "event=0x0008"}, cpus="0-3")
    tree.pmu("uncore_empty", 40, {"event": "config:0-7"}, {"reads": "event=0x04"}, cpumask="")
    tree.pmu("no_type", "", {"event": "config:0-7"})
    (root / DEVICES / "no_files").mkdir(parents=True)
    tree.pmu("word_type", "eleven")
    tree.pmu("offline_cores", 41, {"event": "config:0-7"}, cpus="")
    (root / DEVICES / "unreadable" / "cpumask").mkdir(parents=True)
    tree.write(f"{DEVICES}/unreadable/type", "42")
    tree.pmu("bad_mask", 43, {"event": "config:0-7"}, cpumask="0-x")
    tree.pmu(
        "half_0",
        44,
        {"event": "config:0-7", "bad": "config:9-2", "twice": "config:0-7,3", "strange": "attr:0-3"},
        {
            "good": "event=0x01",
            "no_scale": "event=0x02",
            "no_scale.scale": "many",
            "domain": "event=?",
            "odd_field": "bad=1",
        },
        cpumask="0",
    )
    tree.pmu("bare", 45)
    return tree


TREES = {
    "sapphire_rapids": sapphire_rapids,
    "hybrid_client": hybrid_client,
    "zen4": zen4,
    "grace": grace,
    "odd": odd,
}
