"""A process that polls and records as libkineto does, with neither PyTorch nor its seconds of import: `python looping_trainer.py SECONDS`.

It takes a config, records for the time that is asked for without the activities bit in its polls, and writes a small trace.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fakes.trainer import FakeTrainer

POLL_S = 0.3
_BOTH, _EVENTS_ONLY = 3, 1


def main(seconds: float) -> None:
    """Poll until the time is over."""
    job_id = int(os.environ.get("SLURM_JOB_ID", "0"))
    trainer = FakeTrainer(directory=os.environ.get("KINETO_IPC_SOCKET_DIR", ""))
    ends_at = time.monotonic() + seconds
    config: dict[str, str] = {}
    record_until_s = 0.0
    while time.monotonic() < ends_at:
        if config and time.time() >= record_until_s:
            write_trace(config["ACTIVITIES_LOG_FILE"])
            config = {}
        try:
            trainer.poll(_EVENTS_ONLY if config else _BOTH, job_id)
            answer = trainer.receive(1.0)[1].decode()
        except (OSError, TimeoutError):  # no daemon: it comes back at the next poll
            answer = ""
        if answer and not config:
            config = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
            start_s = int(config.get("PROFILE_START_TIME", "0")) / 1000
            record_until_s = max(start_s, time.time()) + int(config.get("ACTIVITIES_DURATION_MSECS", "100")) / 1000
        time.sleep(POLL_S)


def write_trace(log_file: str) -> None:
    """As libkineto: the pid in the name, a temporary name first."""
    path = f"{log_file.removesuffix('.json')}_{os.getpid()}.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": os.getpid(), "tid": 1, "ts": 1.0, "dur": 90}
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": [event] * 50, "traceName": path}, file)
    os.rename(f"{path}.tmp", path)


if __name__ == "__main__":
    main(float(sys.argv[1]))
