"""What stands beside the events of a trace: whose it is, of which devices, and where its clock begins."""

from collections.abc import Mapping

from dynolog.analysis.reading.columns import TraceHead

_LARGEST_NS = 2**63 - 1


def trace_head(members: Mapping[str, object]) -> TraceHead:
    """From the members of the document; what is not as it should be counts as not said."""
    distributed = members.get("distributedInfo")
    info: dict[str, object] = distributed if isinstance(distributed, dict) else {}
    devices = members.get("deviceProperties")
    return TraceHead(
        rank=whole(info.get("rank")),
        world_size=whole(info.get("world_size")),
        backend=_text(info.get("backend")),
        host=_text(members.get("host_name")),
        base_ns=base_ns(members),
        devices=[device for device in devices if isinstance(device, dict)] if isinstance(devices, list) else [],
        distributed_info=info,
        members=dict(members),
    )


def base_ns(members: Mapping[str, object]) -> int:
    """`baseTimeNanoseconds`, which all times of the file count from; 0 when it has none."""
    value = whole(members.get("baseTimeNanoseconds"))
    return value if value is not None and 0 <= value <= _LARGEST_NS else 0


def whole(value: object) -> int | None:
    """An integer, also one that was written as text (`"rank": "3"`)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return int(value)
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
