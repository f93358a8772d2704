"""What the host's counters say of a time, in words."""

from collections.abc import Mapping

from dynolog.analysis.wording import rate

_BUSY_PCT = 80.0
_WAITING_PCT = 10.0
_WORTH_BYTES_PER_S = 50e6


def host_words(values: Mapping[str, float]) -> list[str]:
    """`CPU 98 % busy in user`, `disk reads at 1.9 GB/s`...: only what is high enough to be a cause."""
    words = []
    for metric, what in (("cpu_user_pct", "busy in user"), ("cpu_system_pct", "busy in the kernel")):
        if values.get(metric, 0.0) >= _BUSY_PCT:
            words.append(f"CPU {values[metric]:.0f} % {what}")
    if values.get("cpu_iowait_pct", 0.0) >= _WAITING_PCT:
        words.append(f"CPU {values['cpu_iowait_pct']:.0f} % waiting for disks")
    if values.get("cpu_steal_pct", 0.0) >= _WAITING_PCT:
        words.append(f"CPU {values['cpu_steal_pct']:.0f} % taken by other guests of the machine")
    queue, cpus = values.get("run_queue", 0.0), values.get("cpu_count", 0.0)
    if cpus and queue > cpus:
        words.append(f"{queue:.0f} tasks want {cpus:.0f} CPUs")
    for resource in ("cpu", "io", "memory"):
        pressure = values.get(f"pressure_{resource}_pct", 0.0)
        if pressure >= _WAITING_PCT:
            words.append(f"{resource} pressure {pressure:.0f} %")
    for metric, what in (
        ("disk_read_bytes_per_s", "disk reads"),
        ("disk_write_bytes_per_s", "disk writes"),
        ("nic_rx_bytes_per_s", "network receives"),
    ):
        if values.get(metric, 0.0) >= _WORTH_BYTES_PER_S:
            words.append(f"{what} at {rate(values[metric])}")
    return words


def quiet_words(values: Mapping[str, float]) -> str:
    """`CPU 4 % busy, disk reads at 0 B/s`: where counters were sampled and none is high enough to be a cause; else ""."""
    if "cpu_user_pct" not in values or host_words(values):
        return ""
    words = [f"CPU {values['cpu_user_pct'] + values.get('cpu_system_pct', 0.0):.0f} % busy"]
    if "disk_read_bytes_per_s" in values:
        words.append(f"disk reads at {rate(values['disk_read_bytes_per_s'])}")
    return ", ".join(words)
