"""What the Prometheus page of the TPU device plugin of Kubernetes says: how busy each chip is, and which container has it.

`duty_cycle`, `memory_total` and `memory_used` are of chips that a container has, and carry its labels; the same names with `_node` are
of all chips. `accelerator_id` is `<uuid>-<number>`.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec

_FAMILIES = ("duty_cycle", "memory_total", "memory_used")
_OF_NODE = "_node"
_OWNER_LABELS = ("namespace", "pod", "container")


class PageSample(msgspec.Struct, frozen=True):
    """One line of the page: a family of interest, its labels and its value. `is_node` for families that end in `_node`."""

    family: str
    is_node: bool
    labels: Mapping[str, str]
    value: float


class TpuOwner(msgspec.Struct, frozen=True):
    """The container that a chip was given to."""

    namespace: str
    pod: str
    container: str


class TpuChip(msgspec.Struct, frozen=True, kw_only=True):
    """One chip. `index` is its number on this host; `serial`, `model` and `maker` are labels of the plugin ("" when not said)."""

    index: int
    serial: str
    model: str = ""
    maker: str = ""
    owner: TpuOwner | None = None
    duty_cycle_pct: float | None = None
    memory_total_bytes: float | None = None
    memory_used_bytes: float | None = None


def parse_page(page: str) -> list[PageSample]:
    """The lines of interest; one that is malformed, or whose value is no finite number >= 0, costs only itself. Never raises."""
    return [sample for line in page.split("\n") if line.startswith(_FAMILIES) and (sample := _sample(line.strip()))]


def _sample(line: str) -> PageSample | None:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - only with --enable_tpu_monitor

    # The library gives up on a whole page for one bad line, so it gets one line at a time.
    try:
        samples = [sample for family in text_string_to_metric_families(line) for sample in family.samples]
    except (ValueError, IndexError, KeyError):
        return None
    if len(samples) != 1 or not math.isfinite(samples[0].value) or samples[0].value < 0:
        return None
    family = samples[0].name.removesuffix(_OF_NODE)
    is_node = family != samples[0].name
    return PageSample(family, is_node, samples[0].labels, samples[0].value) if family in _FAMILIES else None


def chips(samples: Iterable[PageSample]) -> list[TpuChip]:
    """The chips by number. What a container reports wins over what the node reports."""
    by_chip: dict[tuple[int, str], list[PageSample]] = {}
    for sample in samples:
        # `<uuid>-<number>`; the uuid is the same for all chips of a host, and has dashes of its own.
        serial, _, number = sample.labels.get("accelerator_id", "").rpartition("-")
        if serial and number.isascii() and number.isdigit() and len(number) < 6:
            by_chip.setdefault((int(number), serial), []).append(sample)
    return [_chip(index, serial, of_chip) for (index, serial), of_chip in sorted(by_chip.items())]


def _chip(index: int, serial: str, samples: list[PageSample]) -> TpuChip:
    owners = {owner for sample in samples if not sample.is_node and (owner := _owner(sample.labels))}
    # Two containers on one chip: one of them has gone and its lines stay, or they share it. Either way neither speaks for the chip.
    owner = next(iter(owners)) if len(owners) == 1 else None
    found: dict[str, float] = {}
    for of_node in (True, False):
        for sample in samples:
            if sample.is_node == of_node and (of_node or (owner is not None and _owner(sample.labels) == owner)):
                found[sample.family] = sample.value
    duty_cycle = found.get("duty_cycle")
    return TpuChip(
        index=index,
        serial=serial,
        model=_label(samples, "model"),
        maker=_label(samples, "make"),
        owner=owner,
        duty_cycle_pct=duty_cycle if duty_cycle is not None and duty_cycle <= 100 else None,
        memory_total_bytes=found.get("memory_total"),
        memory_used_bytes=found.get("memory_used"),
    )


def _owner(labels: Mapping[str, str]) -> TpuOwner | None:
    namespace, pod, container = (labels.get(name, "") for name in _OWNER_LABELS)
    return TpuOwner(namespace, pod, container) if namespace and pod else None


def _label(samples: list[PageSample], name: str) -> str:
    return next((text for sample in samples if (text := sample.labels.get(name, ""))), "")
