"""What the public HolisticTraceAnalysis says of one trace, as JSON; run by its own Python: hta_counts.py TRACE [bench]."""

import json
import logging
import resource
import sys
import time
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)


def main() -> None:
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - it logs at import

    begun_s = time.process_time()
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
    found: dict[str, object] = {}
    breakdown = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    for column in ("idle_time", "compute_time", "non_compute_time", "kernel_time"):
        found[column] = float(breakdown[f"{column}(us)"])
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100_000, duration_ratio=1.0)
    found["kernels"] = {row["name"]: float(row["sum (us)"]) for _, row in kernels.iterrows()}
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    found["overlap_pct"] = float(overlap["comp_comm_overlap_pctg"].iloc[0])
    queues = analysis.get_queue_length_summary(ranks=[0])
    found["queue_max"] = (
        {}
        if queues is None
        else {str(stream): float(value) for (_, stream), value in queues[("queue_length", "max")].items()}
    )
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    found["idle_by_stream"] = {str(stream): float(part["idle_time"].sum()) for stream, part in idle.groupby("stream")}
    found["cpu_s"] = time.process_time() - begun_s
    found["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found))  # noqa: T201 - its answer


main()
