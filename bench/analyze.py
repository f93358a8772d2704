"""Analysing one trace of a made-up job, beside the public HolisticTraceAnalysis on the same file when its virtual environment is
there (`make test-analysis` makes it); each in a process of its own. Prints JSON.

analyze.py MEGABYTES [write|ours PATH]
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HTA = ROOT / ".venv-hta" / "bin" / "python"
sys.path.insert(0, str(ROOT / "tests"))

# A step of 160 kernels is about 100 kB of JSON.
_STEP_BYTES = 100_000


def write_job(size_bytes: int, directory: Path) -> None:
    from fakes.training_job import TrainingJob  # noqa: PLC0415 - not needed where a trace is analysed

    job = TrainingJob(steps=max(size_bytes // _STEP_BYTES, 1))
    job.kernels, job.kernel_us, job.loader_us = 160, 100.0, 900.0
    job.write(directory)


def ours(path: str) -> dict[str, float]:
    begun_s = time.process_time()
    from dynolog.analysis.analysis import analyse  # noqa: PLC0415 - its import counts, as that of the other does
    from dynolog.analysis.engine import NotRead, read_ranks  # noqa: PLC0415

    _, outcomes = read_ranks([path])
    findings = analyse([one for one in outcomes if not isinstance(one, NotRead)]).findings
    return {
        "cpu_s": time.process_time() - begun_s,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "findings": len(findings),
    }


def answer_of(command: list[str | Path]) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {"cpu_s": found["cpu_s"], "peak_bytes": found["peak_bytes"]}


def main() -> None:
    if len(sys.argv) > 2:
        if sys.argv[2] == "write":
            write_job(int(sys.argv[1]) * 1_000_000, Path(sys.argv[3]))
        else:
            print(json.dumps(ours(sys.argv[3])))
        return
    with tempfile.TemporaryDirectory(prefix="dynolog-bench-") as directory:
        # In a process of its own: what is started from here counts our peak of memory as its own.
        subprocess.run([sys.executable, __file__, sys.argv[1], "write", directory], check=True)
        path = Path(directory) / "rank0.json"
        answer: dict[str, object] = {
            "size_bytes": path.stat().st_size,
            "ours": answer_of([sys.executable, __file__, "0", "ours", path]),
        }
        if HTA.exists():
            answer["hta"] = answer_of([HTA, ROOT / "tests" / "oracles" / "hta_counts.py", path])
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
