"""A trace in a few facts."""

import msgspec

from dynolog.analysis.editing.exporting import Progress, survey_or_say
from dynolog.analysis.editing.validating import notes
from dynolog.analysis.rank.step_spans import find_steps


class TraceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A trace in a few facts. Times in ns; `begin_ns` None for an empty one."""

    path: str
    file_bytes: int
    text_bytes: int
    compressed: bool
    events: int
    begin_ns: int | None
    duration_ns: int
    rank: int | None
    world_size: int | None
    backend: str
    host: str
    devices: list[str]
    categories: dict[str, int]
    steps: list[int]
    steps_from: str
    notes: list[str]


def info(path: str, progress: Progress | None = None) -> TraceInfo:
    """Read a trace for its facts. Raises NotReadable."""
    columns = survey_or_say(path, progress)
    report, head = columns.report, columns.head
    steps = find_steps(columns)
    span = columns.span_ns
    return TraceInfo(
        path=path,
        file_bytes=report.file_bytes,
        text_bytes=report.text_bytes,
        compressed=report.compressed,
        events=report.events,
        begin_ns=span[0] if span else None,
        duration_ns=span[1] - span[0] if span else 0,
        rank=head.rank,
        world_size=head.world_size,
        backend=head.backend,
        host=head.host,
        devices=[str(device.get("name", "?")) for device in head.devices],
        categories=columns.count_by_raw_category(),
        steps=[step.number for step in steps.spans],
        steps_from=steps.source,
        notes=[*report.sentences(), *notes(columns)],
    )
