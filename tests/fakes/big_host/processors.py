"""Processors of the big host: 2 packages of 64 cores with 2 threads each, 4 NUMA nodes, 600 device interrupts.

A step is a second. In each, every CPU of node N spends 10·(N+1) % of its time in user mode, 5·(N+1) % in system mode, 1 % each in
interrupts and softirqs, and idles for the rest.
"""

from functools import cache
from pathlib import Path

from fakes.big_host.files import write, write_once

CPUS = 256
CORES = 128
NODES = 4
PACKAGES = 2
DEVICE_INTERRUPTS = 600
TICKS = 100

USER_PCT = {node: 10 * (node + 1) for node in range(NODES)}
SYSTEM_PCT = {node: 5 * (node + 1) for node in range(NODES)}
IRQ_PCT = SOFTIRQ_PCT = 1
CONTEXT_SWITCHES, INTERRUPTS, FORKS = 1_234_567, 765_432, 250
SOFTIRQS = (0, 256_000, 40, 90_000, 12_000, 0, 7, 128_000, 3, 64_000)
# By class: what each CPU counts in a step.
INTERRUPTS_PER_CPU = {"NMI": 1, "LOC": 250, "IWI": 2, "RES": 3, "CAL": 7, "TLB": 5, "MCP": 0, "MCE": 0}
PRESSURE_US = {"cpu": (30_000, 0), "memory": (2_000, 1_000), "io": (50_000, 20_000), "irq": (None, 400)}
CORE_THROTTLES, PACKAGE_THROTTLES = 2, 1  # each core, each package


def node_of(cpu: int) -> int:
    """Threads of a core are `CORES` apart, as on real machines; nodes are runs of cores."""
    return cpu % CORES // (CORES // NODES)


def build_processors(root: Path, step: int) -> None:
    """Write or rewrite the files of the processors as they are at `step`."""
    write(root, "proc/stat", _stat(step))
    write(root, "proc/interrupts", _interrupts(step))
    write(root, "proc/loadavg", f"{100 + step}.25 96.50 80.75 120/{9000 + step} {70000 + step}\n")
    write(root, "proc/uptime", f"{4_000_000 + step}.73 {900_000_000 + step}.10\n")
    write_once(root, "proc/sys/kernel/random/boot_id", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n")
    for resource, (some, full) in PRESSURE_US.items():
        lines = [
            f"{extent} avg10={per_step / 10_000:.2f} avg60=0.00 avg300=0.00 total={777_000 + step * per_step}\n"
            for extent, per_step in (("some", some), ("full", full))
            if per_step is not None
        ]
        write(root, f"proc/pressure/{resource}", "".join(lines))
    for node in range(NODES):
        first = node * CORES // NODES
        cpulist = f"{first}-{first + 31},{CORES + first}-{CORES + first + 31}\n"
        write_once(root, f"sys/devices/system/node/node{node}/cpulist", cpulist)
    write_once(root, "sys/devices/system/cpu/online", f"0-{CPUS - 1}\n")
    for cpu in range(CPUS):
        _build_cpu(root, cpu, step)


def _build_cpu(root: Path, cpu: int, step: int) -> None:
    folder = f"sys/devices/system/cpu/cpu{cpu}"
    package = cpu % CORES // (CORES // PACKAGES)
    write_once(root, f"{folder}/topology/physical_package_id", f"{package}\n")
    write_once(root, f"{folder}/topology/core_id", f"{cpu % (CORES // PACKAGES)}\n")
    write(root, f"{folder}/cpufreq/scaling_cur_freq", f"{2_000_000 + 4000 * cpu + 1000 * step}\n")
    write(root, f"{folder}/thermal_throttle/core_throttle_count", f"{cpu % CORES + CORE_THROTTLES * step}\n")
    write(root, f"{folder}/thermal_throttle/package_throttle_count", f"{50 + PACKAGE_THROTTLES * step}\n")


def _cpu_times(cpu: int, step: int) -> tuple[int, ...]:
    node = node_of(cpu)
    user, system = USER_PCT[node], SYSTEM_PCT[node]
    idle = TICKS - user - system - IRQ_PCT - SOFTIRQ_PCT
    return (
        1_000_000 + 31 * cpu + user * step,
        400 + cpu,
        500_000 + 17 * cpu + system * step,
        300_000_000 + 101 * cpu + idle * step,
        9_000 + cpu,
        700 + IRQ_PCT * step,
        800 + SOFTIRQ_PCT * step,
        0,
        0,
        0,
    )


def _stat(step: int) -> str:
    times = [_cpu_times(cpu, step) for cpu in range(CPUS)]
    total = " ".join(str(sum(column)) for column in zip(*times, strict=True))
    lines = [f"cpu  {total}", *(f"cpu{cpu} {' '.join(map(str, row))}" for cpu, row in enumerate(times))]
    lines += [
        f"intr {9_000_000_000 + INTERRUPTS * step}" + " 0 0 0 12" * 1500,
        f"ctxt {70_000_000_000 + CONTEXT_SWITCHES * step}",
        "btime 1700000000",
        f"processes {5_000_000 + FORKS * step}",
        "procs_running 120",
        "procs_blocked 3",
        f"softirq {1_000_000 + sum(SOFTIRQS) * step} {' '.join(str(100_000 + per_step * step) for per_step in SOFTIRQS)}",
    ]
    return "\n".join(lines) + "\n"


@cache
def _device_lines() -> str:
    """Each device interrupts one CPU; these counts stand still."""
    lines = []
    for device in range(DEVICE_INTERRUPTS):
        counts = ["         0"] * CPUS
        counts[device % CPUS] = f"{1000 + device:>10}"
        lines.append(
            f"{device:>4}: {' '.join(counts)}  IR-PCI-MSIX-0000:{device % 250:02x}:00.0  {device}-edge  mlx5_comp{device}"
        )
    return "\n".join(lines)


def _interrupts(step: int) -> str:
    header = "      " + "".join(f"{'CPU' + str(cpu):>11}" for cpu in range(CPUS))
    lines = [header, _device_lines()]
    for label, per_step in INTERRUPTS_PER_CPU.items():
        counts = " ".join(f"{3_000_000 + cpu + per_step * step:>10}" for cpu in range(CPUS))
        lines.append(f"{label:>4}: {counts}   Some description of {label}")
    lines += [" ERR:          0", " MIS:          0"]
    lines.append(f" PIN: {' '.join(['         0'] * CPUS)}   Posted-interrupt notification event")
    return "\n".join(lines) + "\n"
