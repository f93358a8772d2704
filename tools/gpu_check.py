"""Compare the NVML backend with nvidia-smi on a machine with NVIDIA GPUs: `make test-gpu`.

Each value is read by both, nvidia-smi before and after. Exit code 0: all agree; 1: some differ; 3: there is nothing to compare with.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.nvml.backend import NvmlBackend

MIB = 1 << 20
# What nvidia-smi prints where there is no value.
NON_VALUES = frozenset(
    {
        "[n/a]",
        "n/a",
        "[not supported]",
        "[unknown error]",
        "err!",
        "[gpu requires reset]",
        "[insufficient permissions]",
        "",
    }
)


class Column:
    """One column of nvidia-smi, the key that says the same, and how far the two may be apart."""

    def __init__(self, query: str, key: str, *, scale: float = 1, relative: float = 0, absolute: float = 0) -> None:
        self.query = query
        self.key = key
        self.scale = scale
        self.relative = relative
        self.absolute = absolute

    def fits(self, ours: float, before: float, after: float) -> bool:
        """Whether ours is between the two of nvidia-smi, or near them."""
        room = self.absolute + self.relative * max(abs(before), abs(after))
        return min(before, after) - room <= ours <= max(before, after) + room


def _moving(query: str, key: str, absolute: float = 0, relative: float = 0.25) -> Column:
    return Column(query, key, relative=relative, absolute=absolute)


def _memory(query: str, key: str) -> Column:
    return Column(query, key, scale=MIB, absolute=2 * MIB)


COLUMNS = (
    _moving("utilization.gpu", "gpu_device_utilization", 25),
    _moving("utilization.memory", "gpu_memory_utilization", 25),
    _moving("clocks.sm", "gpu_frequency_mhz", 30),
    _moving("clocks.mem", "gpu_memory_frequency_mhz", 30),
    Column("clocks.max.sm", "gpu_frequency_max_mhz"),
    Column("clocks.max.mem", "gpu_memory_frequency_max_mhz"),
    _moving("power.draw.instant", "gpu_power_draw", 20),
    Column("enforced.power.limit", "gpu_power_limit", absolute=0.01),
    Column("power.max_limit", "gpu_power_limit_max", absolute=0.01),
    _moving("temperature.gpu", "gpu_temperature_celsius", 3, 0),
    _moving("temperature.memory", "gpu_memory_temperature_celsius", 3, 0),
    _moving("fan.speed", "gpu_fan_speed", 10),
    _memory("memory.total", "gpu_memory_total_bytes"),
    _memory("memory.reserved", "gpu_memory_reserved_bytes"),
    _memory("memory.used", "gpu_memory_used_bytes"),
    _memory("memory.free", "gpu_memory_free_bytes"),
    Column("pcie.link.gen.gpucurrent", "pcie_link_generation"),
    Column("pcie.link.gen.max", "pcie_link_generation_max"),
    Column("pcie.link.width.current", "pcie_link_width"),
    Column("pcie.link.width.max", "pcie_link_width_max"),
    Column("ecc.errors.corrected.volatile.total", "ecc_corrected_errors"),
    Column("ecc.errors.uncorrected.volatile.total", "ecc_uncorrected_errors"),
    Column("ecc.errors.corrected.aggregate.total", "ecc_corrected_errors_lifetime"),
    Column("ecc.errors.uncorrected.aggregate.total", "ecc_uncorrected_errors_lifetime"),
    Column("remapped_rows.correctable", "remapped_rows_corrected"),
    Column("remapped_rows.uncorrectable", "remapped_rows_uncorrected"),
)
Smi = Mapping[str, Mapping[str, str]]


def number(text: str) -> float | None:
    """A cell as a number; None for what is no value."""
    text = text.strip()
    if text.lower() in NON_VALUES:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _query(queries: Sequence[str]) -> list[str] | None:
    """The lines of nvidia-smi, None when it does not know one of these columns. Raises OSError."""
    command = ["nvidia-smi", f"--query-gpu=uuid,{','.join(queries)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return None if done.returncode else done.stdout.splitlines()


def known_queries() -> list[str]:
    """The columns that this nvidia-smi knows; says which it does not. Raises OSError."""
    queries = [column.query for column in COLUMNS]
    if _query(queries) is not None:
        return queries
    known = [query for query in queries if _query([query]) is not None]
    print("nvidia-smi does not know", ", ".join(sorted(set(queries) - set(known))))
    return known


def ask_smi(queries: Sequence[str]) -> Smi:
    """What nvidia-smi says, by uuid and column. Raises OSError."""
    rows = [[cell.strip() for cell in line.split(",")] for line in _query(queries) or []]
    return {uuid: dict(zip(queries, cells, strict=False)) for uuid, *cells in rows}


def compare(reading: GpuReading, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs on one device, a sentence each; prints every value."""
    differences = []
    for column in COLUMNS:
        if column.query not in before or column.query not in after:
            continue
        both = (number(before[column.query]), number(after[column.query]))
        ours = reading.values.get(column.key, reading.counters.get(column.key))
        if None in both or ours is None:
            agrees = both == (None, None) and ours is None
        else:
            agrees = column.fits(float(ours), *(value * column.scale for value in both if value is not None))
        line = f"GPU {reading.device} {column.key}: {ours}; nvidia-smi {column.query}: {before[column.query]}"
        print(f"{'ok      ' if agrees else 'DIFFERS '}{line}")
        if not agrees:
            differences.append(line)
    return differences


def _plausible(first: GpuReading, second: GpuReading, elapsed_s: float) -> list[str]:
    """What cannot be true of one device between two readings."""
    differences = []
    joules = second.counters.get("gpu_energy_joules", 0) - first.counters.get("gpu_energy_joules", 0)
    power_w = second.values.get("gpu_power_draw")
    if isinstance(power_w, (int, float)) and "gpu_energy_joules" in second.counters:
        print(
            f"        GPU {second.device}: {joules / elapsed_s:.1f} W by the energy counter, {power_w} W by the power sensor"
        )
        if joules <= 0:
            differences.append(f"GPU {second.device}: the energy counter stands still")
    ratios = {key: value for key, value in second.values.items() if key.endswith(("_ratio", "_active", "_occupancy"))}
    print(f"        GPU {second.device}: activity {ratios or 'is not measured here'}")
    differences += [
        f"GPU {second.device}: {key} is {value}" for key, value in ratios.items() if not 0 <= float(value) <= 1
    ]
    return differences


def check(rounds: int, pause_s: float) -> int:
    """The exit code."""
    if shutil.which("nvidia-smi") is None:
        print("NOTHING WAS CHECKED: nvidia-smi is not here, so this machine has no NVIDIA driver", file=sys.stderr)
        return 3
    backend = NvmlBackend(GpuOptions(backend="nvml", interval_s=pause_s))
    try:
        backend.open()
    except SourceUnavailable as error:
        print(f"NOTHING WAS CHECKED: {error}", file=sys.stderr)
        return 3
    started = time.monotonic()
    first = {one.uuid: one for one in backend.sample().readings}
    times_ms = []
    queries = known_queries()
    before = ask_smi(queries)
    for _ in range(rounds):
        time.sleep(pause_s)
        begun = time.perf_counter()
        sample = backend.sample()
        times_ms.append((time.perf_counter() - begun) * 1000)
    elapsed_s = time.monotonic() - started
    after = ask_smi(queries)
    backend.close()
    whole = [one for one in sample.readings if one.gpu_instance_id is None]
    differences = [] if len(before) == len(whole) else [f"nvidia-smi has {len(before)} GPUs, NVML {len(whole)}"]
    for reading in whole:
        if not reading.is_up or reading.uuid not in before or reading.uuid not in after:
            differences.append(
                f"GPU {reading.device} is not compared: {reading.error or 'nvidia-smi does not list it'}"
            )
            continue
        differences += compare(reading, before[reading.uuid], after[reading.uuid])
        differences += _plausible(first[reading.uuid], reading, elapsed_s)
    print(f"driver {sample.driver_version}; profiling {sample.profiling} {sample.profiling_why}")
    print(
        f"a sample of {len(sample.readings)} readings takes {statistics.median(times_ms):.1f} ms (median of {len(times_ms)})"
    )
    print(*(f"notice: {sentence}" for _, sentence in sample.notices), sep="\n")
    print(f"{len(differences)} differences", *differences, sep="\n  ")
    return 1 if differences else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the NVML backend with nvidia-smi.")
    parser.add_argument("--rounds", type=int, default=5, help="samples to take (5)")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between them (1)")
    arguments = parser.parse_args()
    return check(arguments.rounds, arguments.pause)


if __name__ == "__main__":
    sys.exit(main())
