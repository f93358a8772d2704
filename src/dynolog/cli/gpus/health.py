"""How a GPU fares, in the words that `dyno gpus` prints."""

from collections.abc import Iterator, Mapping

from dynolog.cli.quantities import count, duration
from dynolog.model.gpu_view import GpuDevice

HEALTHY = "ok"
_XID_SEEN = "xid_last_seen_timestamp."
_LINK_UP = "nvlink_is_up."
_RAS = "ras_errors_uncorrected."
_THROTTLES = ("gpu_throttle_active.", "gpu_throttle_ms.")
# The clocks are low because somebody set them so, or because there is nothing to do.
_BY_CHOICE = frozenset(("idle", "low_utilization", "app_clocks", "base_clocks", "display_clocks"))
# An Xid of long ago is history: `dyno metrics` still has it.
_XID_SHOWN_S = 86_400
_MOST_XIDS = 3


def health(device: GpuDevice, now_s: float) -> str:
    """`ok`, or all that is wrong, the worst first. `now_s` is the daemon's clock."""
    return "; ".join(_troubles(device, now_s)) or HEALTHY


def _troubles(device: GpuDevice, now_s: float) -> Iterator[str]:
    numbers = {key: value for key, value in device.values.items() if not isinstance(value, str)}
    if not device.is_up:
        yield f"lost: {device.error}" if device.error else "lost"
    yield from _xids(numbers, now_s)
    yield from _memory(numbers, device.counters)
    reasons = [
        key.partition(".")[2].replace("_", " ")
        for key, value in sorted(numbers.items())
        if value > 0 and key.startswith(_THROTTLES) and key.partition(".")[2] not in _BY_CHOICE
    ]
    if reasons:
        yield f"throttled: {', '.join(dict.fromkeys(reasons))}"
    width, most = numbers.get("pcie_link_width"), numbers.get("pcie_link_width_max")
    if width and most and width < most:
        yield f"PCIe x{width:g} of x{most:g}"
    down = [key.removeprefix(_LINK_UP) for key, value in numbers.items() if key.startswith(_LINK_UP) and not value]
    if down:
        yield f"NVLink down: {', '.join(sorted(down, key=lambda link: (len(link), link)))}"
    if numbers.get("gpu_suspect"):
        yield "profiling counters read 0 while it is busy"


def _xids(numbers: Mapping[str, float], now_s: float) -> Iterator[str]:
    seen = [(value, key.removeprefix(_XID_SEEN)) for key, value in numbers.items() if key.startswith(_XID_SEEN)]
    recent = sorted((pair for pair in seen if now_s - pair[0] < _XID_SHOWN_S), reverse=True)
    for seen_s, code in recent[:_MOST_XIDS]:
        yield f"Xid {code} {duration(now_s - seen_s)} ago"
    if len(recent) > _MOST_XIDS:
        yield f"{len(recent) - _MOST_XIDS} other Xids"


def _memory(numbers: Mapping[str, float], counters: Mapping[str, int | float]) -> Iterator[str]:
    if numbers.get("row_remap_failure"):
        yield "a memory row could not be replaced: exchange the device"
    if numbers.get("row_remap_pending"):
        yield "a memory row waits for a reset to be replaced"
    uncorrected = int(counters.get("ecc_uncorrected_errors", 0))
    uncorrected += int(sum(value for key, value in counters.items() if key.startswith(_RAS)))
    if uncorrected:
        yield f"ECC: {count(uncorrected, 'uncorrected error')}"
