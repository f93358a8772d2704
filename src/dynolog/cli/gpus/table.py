"""GPUs as a table, and what to say of their source."""

from collections.abc import Callable, Iterable, Sequence

from dynolog.cli.gpus.health import health
from dynolog.cli.quantities import count, duration
from dynolog.cli.table import table
from dynolog.model.gpu import ProfilingState
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.rpc.messages import GpusReply

GPUS_HEADER = ("GPU", "NAME", "USE", "MEMORY", "POWER", "CLOCK", "TEMP", "HEALTH", "JOB", "USER", "PIDS")
RIGHT = (2, 3, 4, 5, 6)
# On a narrow terminal: names of devices and jobs lose their middle, never the health.
_YIELDING = {1: 8, 8: 8}
_MOST_PIDS = 6
_MOST_NAMES = 4
_GB = 1e9
_NOTHING = "-"


def gpus_table(reply: GpusReply, columns: int | None) -> str:
    """One line a device, those of its MIG instances indented below; "" when there is none."""
    return table(GPUS_HEADER, gpu_rows(reply), right=RIGHT, columns=columns, yielding=_YIELDING)


def gpu_rows(reply: GpusReply) -> list[tuple[str, ...]]:
    """The cells below GPUS_HEADER; `-` where something is not known."""
    return [gpu_row(device, reply.wall_ns / 1e9) for device in sorted(reply.devices, key=_order)]


def gpu_row(device: GpuDevice, now_s: float) -> tuple[str, ...]:
    """The cells of one device."""
    pids = [pid for use in device.uses for pid in use.pids]
    more = f" +{len(pids) - _MOST_PIDS}" if len(pids) > _MOST_PIDS else ""
    return (
        _name(device),
        device.labels.get("gpu_name", _NOTHING),
        _use(device),
        _memory(device),
        _power(device),
        _with_unit(device, "gpu_frequency_mhz", "MHz"),
        _with_unit(device, "gpu_temperature_celsius", "°C"),
        health(device, now_s),
        _texts(device, _job),
        _texts(device, lambda labels: labels.get("username", "")),
        ",".join(map(str, sorted(pids)[:_MOST_PIDS])) + more or _NOTHING,
    )


def source_lines(gpu: GpuStatus, wall_ns: int) -> list[str]:
    """What reads the devices, and what is wrong with that."""
    versions = [f"driver {gpu.driver_version}"] * bool(gpu.driver_version)
    versions += [f"library {gpu.library_version}"] * bool(gpu.library_version)
    lines = list(gpu.notes) if gpu.backend else []
    if versions and lines:
        lines[0] += f"; {', '.join(versions)}"
    if gpu.why:
        lines.append(f"GPUs are not read now: {gpu.why}")
    elif gpu.seen < gpu.expected:
        lines.append(f"{gpu.seen} of {count(gpu.expected, 'GPU')} answer")
    if gpu.paused_until_wall_ns:
        left = duration((gpu.paused_until_wall_ns - wall_ns) / 1e9)
        lines.append(f"Profiling is paused for {left} more; `dyno dcgm-resume` ends that.")
    elif gpu.profiling is ProfilingState.TAKEN:
        lines.append(f"The profiling hardware is taken: {gpu.profiling_why or 'another tool holds it'}")
    elif gpu.profiling_why:
        lines.append(f"Profiling: {gpu.profiling_why}")
    return lines


def no_gpus(gpu: GpuStatus) -> str:
    """Why there is no device to show, and what to do."""
    if not gpu.enabled:
        return "The daemon does not monitor GPUs. Start it with `dynolog --enable_gpu_monitor`."
    if gpu.why:
        return f"No GPU is read: {gpu.why}"
    if gpu.backend and gpu.expected == 0:
        return f"{gpu.backend} finds no GPU on this machine."
    return "No sample of the GPUs has come yet: they are reported from the second reading on."


def _order(device: GpuDevice) -> tuple[int, str, Sequence[int]]:
    number = device.labels.get("device", device.subject)
    instance = [int(device.labels.get(f"{kind}_instance_id", -1)) for kind in ("gpu", "compute")]
    return (int(number) if number.isdecimal() else 1 << 30, number, instance)


def _name(device: GpuDevice) -> str:
    number = device.labels.get("device", device.subject)
    instance = device.labels.get("gpu_instance_id")
    if instance is None:
        return number
    compute = device.labels.get("compute_instance_id")
    return f"  {number}/gi{instance}" + (f"/ci{compute}" if compute is not None else "")


def _number(device: GpuDevice, key: str) -> float | None:
    value = device.values.get(key)
    return None if isinstance(value, str) else value


def _use(device: GpuDevice) -> str:
    """The utilisation; of a MIG instance, which has none, the share of time in which its engines were busy."""
    percent = _number(device, "gpu_device_utilization")
    if percent is None and (ratio := _number(device, "graphics_engine_active_ratio")) is not None:
        percent = 100 * ratio
    return _NOTHING if percent is None else f"{percent:.0f} %"


def _memory(device: GpuDevice) -> str:
    used, total = _number(device, "gpu_memory_used_bytes"), _number(device, "gpu_memory_total_bytes")
    if used is None:
        return _NOTHING
    return f"{used / _GB:.1f}" + (f"/{total / _GB:.1f} GB" if total else " GB")


def _power(device: GpuDevice) -> str:
    watts, limit = _number(device, "gpu_power_draw"), _number(device, "gpu_power_limit")
    if watts is None:
        return _NOTHING
    return f"{watts:.0f}" + (f"/{limit:.0f} W" if limit else " W")


def _with_unit(device: GpuDevice, key: str, unit: str) -> str:
    value = _number(device, key)
    return _NOTHING if value is None else f"{value:.0f} {unit}"


def _job(labels: dict[str, str]) -> str:
    """The SLURM job, else the pod."""
    pod = "/".join(filter(None, (labels.get("pod_namespace"), labels.get("pod_name"))))
    return labels.get("job_id") or pod


def _texts(device: GpuDevice, text_of: Callable[[dict[str, str]], str]) -> str:
    all_labels: Iterable[dict[str, str]] = [dict(use.labels) for use in device.uses]
    texts = [text for labels in all_labels if (text := text_of(labels))] or [text_of(dict(device.labels))]
    names = list(dict.fromkeys(filter(None, texts)))
    more = f" +{len(names) - _MOST_NAMES}" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more or _NOTHING
