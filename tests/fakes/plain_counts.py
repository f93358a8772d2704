"""The definitions of docs/analysis.md once more, slow and plain: the standard library, one event after the other, one moment after the
other. Only for tests; shares no code with the product. Times in ns."""

import gzip
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_COMMUNICATION = re.compile("nccl|rccl", re.IGNORECASE)


def events_of(path: Path) -> list[Event]:
    """Complete events with whole ns."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    found = []
    for event in json.loads(text, parse_float=Decimal)["traceEvents"]:
        if event.get("ph") == "X":
            begin, lasts = int(event["ts"] * 1000), int(event["dur"] * 1000)
            found.append(event | {"begin": begin, "end": begin + lasts, "args": event.get("args", {})})
    return found


def gpu_events(events: list[Event]) -> list[Event]:
    """Of the only device, with `end` no later than the next begin on the stream."""
    chosen = sorted((event for event in events if event.get("cat") in _GPU), key=lambda event: event["begin"])
    streams: dict[object, list[Event]] = defaultdict(list)
    for event in chosen:
        streams[event["args"].get("stream")].append(event)
    for stream in streams.values():
        for place, event in enumerate(stream):
            later = [other["begin"] for other in stream[place + 1 :] if other["begin"] > event["begin"]][:1]
            if later:
                event["end"] = min(event["end"], later[0])
    return chosen


def kind(event: Event) -> str:
    if event["cat"] != "kernel":
        return "memory"
    return "communication" if _COMMUNICATION.search(event["name"]) else "compute"


def time_split(gpu: list[Event]) -> dict[str, int]:
    """Each stretch between two moments at which something begins or ends counts by what is active in it."""
    moments = sorted(
        [(event["begin"], 1, kind(event)) for event in gpu] + [(event["end"], -1, kind(event)) for event in gpu]
    )
    active: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for (moment, change, what), (following, _, _) in zip(moments, [*moments[1:], moments[-1]], strict=True):
        active[what] += change
        lasts = following - moment
        now = {one for one in active if active[one]}
        parts["busy"] += lasts if now else 0
        parts["idle"] += 0 if now else lasts
        for one in now:
            parts[one] += lasts
        if "communication" in now and "compute" not in now:
            parts["exposed_communication"] += lasts
        if now == {"memory"}:
            parts["exposed_memory"] += lasts
    return dict(parts)


def idle_causes(events: list[Event], gpu: list[Event]) -> dict[str, int]:
    """Each gap by the host's call that launched what ends it."""
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and event["args"].get("correlation")
    }
    loader = [
        event for event in events if "DataLoader" in event["name"] and event.get("cat") in ("user_annotation", "cpu_op")
    ]
    syncs = [
        event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
        and (event["name"].endswith("Synchronize") or event["name"] in ("cudaMemcpy", "hipMemcpy"))
    ]
    causes: Counter[str] = Counter()
    reached = gpu[0]["end"]
    for event in gpu[1:]:
        if event["begin"] > reached:
            call = calls.get(event["args"].get("correlation"))
            synced = any(one["begin"] <= reached < one["end"] for one in syncs)
            _one_gap(causes, (reached, event["begin"]), call, loader, synced=synced)
        reached = max(reached, event["end"])
    return {cause: amount for cause, amount in causes.items() if amount}


def _one_gap(
    causes: Counter[str], gap: tuple[int, int], call: Event | None, loader: list[Event], *, synced: bool
) -> None:
    begin, end = gap
    if call is None:
        causes["unknown"] += end - begin
        return
    called = min(max(call["begin"], begin), end)
    waiting: set[tuple[int, int]] = {
        (max(one["begin"], begin), min(one["end"], called))
        for one in loader
        if one["begin"] < called and one["end"] > begin
    }
    loading = sum(max(until - since, 0) for since, until in waiting)  # spans of one thread, which do not overlap
    causes["data_loader"] += loading
    rest = end - begin - loading
    if end - begin <= 50_000 and not (synced and call["begin"] >= begin):
        causes["launch"] += rest
    elif call["begin"] < begin:
        causes["queued"] += rest
    else:
        causes["cpu"] += rest


def by_name(chosen: list[Event]) -> dict[str, tuple[int, int]]:
    """Count and total of each name."""
    found: dict[str, tuple[int, int]] = {}
    for event in chosen:
        count, total = found.get(event["name"], (0, 0))
        found[event["name"]] = (count + 1, total + event["end"] - event["begin"])
    return found


def self_times(events: list[Event]) -> dict[str, int]:
    """Operators without the operators and calls of the runtime directly inside them, by name: every pair is looked at."""
    of_host = [event for event in events if event.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver")]
    tracks: dict[object, list[Event]] = defaultdict(list)
    for event in of_host:
        tracks[event["pid"], event["tid"]].append(event)
    own: Counter[int] = Counter({id(event): event["end"] - event["begin"] for event in of_host})
    for track in tracks.values():
        track.sort(key=lambda event: (event["begin"], event["begin"] - event["end"]))
        for place, event in enumerate(track):
            callers = [other for other in track[:place] if other["end"] > event["begin"]]
            if callers:
                own[id(callers[-1])] -= event["end"] - event["begin"]
    found: Counter[str] = Counter()
    for event in of_host:
        if event["cat"] == "cpu_op":
            found[event["name"]] += own[id(event)]
    return dict(found)


def queue(events: list[Event], gpu: list[Event]) -> int:
    """The most that were handed over and had not begun."""
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and event["args"].get("correlation")
    }
    pairs = [
        (calls[number]["begin"], event["begin"])
        for event in gpu
        if (number := event["args"].get("correlation")) in calls
    ]
    return max((sum(1 for called, begun in pairs if called <= moment < begun) for moment, _ in pairs), default=0)
