"""Small traces in the layouts that libkineto's versions write."""

import json
from collections.abc import Sequence
from pathlib import Path

RECORDED = Path(__file__).parent.parent / "data" / "traces"


def operation(name: str, ts: float, dur: float, **fields: object) -> dict[str, object]:
    """A complete event of a CPU operator; `fields` replace or add."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}} | fields


def trace(events: Sequence[dict[str, object] | str], tail: dict[str, object] | None = None) -> bytes:
    """A trace as libkineto lays it out; an event that is a text is put in as it is."""
    texts = [event if isinstance(event, str) else json.dumps(event, indent=4) for event in events]
    members = {"traceName": "t.json"} if tail is None else tail
    rest = "".join(f",\n  {json.dumps(key)}: {json.dumps(value)}" for key, value in members.items())
    header = (
        '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "A"},{"id": 1, "name": "B"}\n  ],\n'
    )
    body = ",\n  ".join(texts)
    return f"""{header}  "traceEvents": [\n  {body}\n  ]{rest}\n}}\n""".encode()
