"""Trace requests and their replies, between the words of the wire and those of the product."""

from dynolog.model.errors import RequestError
from dynolog.model.trace_request import TraceOutcome, TraceRequest
from dynolog.rpc.messages import SetKinetOnDemandRequest, TraceReply

MAX_PIDS = 65536
# Names, ranks and GPUs to trace: more are no person's choice.
MAX_CHOICES = 4096
# Finer than 20 ms the kernel's own counters are not; slower than 10 s no trace needs samples of its own.
HOST_INTERVAL_MS = (20, 10_000)
_JOB_ID_RANGE = range(-(1 << 63), 1 << 64)


def trace_request(request: SetKinetOnDemandRequest) -> TraceRequest:
    """The request of the wire in the product's words. Raises RequestError for values that cannot be meant."""
    if request.job_id not in _JOB_ID_RANGE:
        raise RequestError("bad_request", f"job_id {str(request.job_id)[:40]} does not fit into 64 bits")
    if len(request.pids) > MAX_PIDS:
        raise RequestError("bad_request", f"{len(request.pids)} pids are too many: at most {MAX_PIDS}, or none for all")
    for what, values in (("names", request.names), ("ranks", request.ranks), ("gpus", request.gpus)):
        if len(values) > MAX_CHOICES:
            raise RequestError("bad_request", f"{len(values)} {what} are too many: at most {MAX_CHOICES}")
    if len(request.log_files) > MAX_PIDS:
        raise RequestError("bad_request", f"{len(request.log_files)} log_files are too many: at most {MAX_PIDS}")
    if request.process_limit < 0:
        raise RequestError("bad_request", f"process_limit is {request.process_limit}: it must be 0 (all) or more")
    if request.host_interval_ms and not HOST_INTERVAL_MS[0] <= request.host_interval_ms <= HOST_INTERVAL_MS[1]:
        raise RequestError(
            "bad_request",
            f"host_interval_ms is {request.host_interval_ms}: it must be {HOST_INTERVAL_MS[0]} to {HOST_INTERVAL_MS[1]}, or 0",
        )
    return TraceRequest(
        config=request.config,
        pids=tuple(request.pids),
        job_id=request.job_id,
        job=request.job,
        process_limit=request.process_limit,
        names=tuple(request.names),
        ranks=tuple(request.ranks),
        include_launchers=request.include_launchers,
        dry_run=request.dry_run,
        log_files=request.log_files,
        gpus=tuple(request.gpus),
        host_interval_ms=request.host_interval_ms,
    )


def trace_reply(outcome: TraceOutcome) -> TraceReply:
    """The outcome with the public Dynolog's five keys; there are no event profilers."""
    return TraceReply(
        processesMatched=list(outcome.matched),
        eventProfilersTriggered=[],
        activityProfilersTriggered=list(outcome.triggered),
        eventProfilersBusy=0,
        activityProfilersBusy=outcome.busy,
        request_id=outcome.request_id,
        captures=outcome.captures,
        not_traced=outcome.not_traced,
        no_match_code=outcome.no_match_code,
        no_match_reason=outcome.no_match_reason,
        notes=outcome.notes,
        warnings=outcome.warnings,
        expected_s=outcome.expected_s,
    )
