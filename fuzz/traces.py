"""Trace files, which a trainer or anybody else has written."""

import io
from contextlib import ExitStack

from dynolog.analysis.reading.load import load
from dynolog.fleet.distributed_info import scan
from dynolog.profiling.trace_bytes import NotATrace, TraceUnreadable
from dynolog.profiling.trace_check import check, check_pickle
from fuzz.settings_files import file_feed
from fuzz.target import Feed, Target, plain


def _columns(directory: str, stack: ExitStack) -> Feed:
    return file_feed(directory, stack, load)


TARGETS: tuple[Target, ...] = (
    plain("trace_check", lambda data: check(io.BytesIO(data).read), TraceUnreadable, largest=4096),
    plain("memory_snapshot", lambda data: check_pickle(io.BytesIO(data).read), TraceUnreadable),
    plain("trace_scan", lambda data: scan(io.BytesIO(data))),
    Target("trace_columns", _columns, (NotATrace,), largest=4096, share=0.1),
)
