"""What thousands of registered trainers cost the daemon, and how fast all of them are triggered.

many_trainers.py --pid DAEMON --port 1778 --socket-dir DIR --n 4000
As root each trainer is a real process; else all share this one's credentials and only one registers. Prints one JSON object.
"""

import argparse
import gc
import json
import os
import socket
import struct
import sys
import time

from trainers import Trainer

LENGTH = struct.Struct("=i")


def call(port: int, request: dict[str, object]) -> dict[str, object]:
    reply: dict[str, object] = json.loads(raw_call(port, request))
    return reply


def raw_call(port: int, request: dict[str, object]) -> bytes:
    """The reply as it came: reading megabytes of JSON takes this process longer than the daemon."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        body = json.dumps(request).encode()
        sock.sendall(LENGTH.pack(len(body)) + body)
        stream = sock.makefile("rb")
        return stream.read(LENGTH.unpack(stream.read(4))[0])


def private_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_"))


def registered(port: int) -> list[dict[str, object]]:
    trainers = call(port, {"fn": "listProcesses"})["trainers"]
    assert isinstance(trainers, list)
    return trainers


def settle(port: int, count: int) -> None:
    """Until so many are registered and the details of each were read."""
    deadline = time.monotonic() + 60
    while len(found := registered(port)) != count or not all(trainer.get("start_time_ticks") for trainer in found):
        if time.monotonic() > deadline:
            sys.exit(f"{len(found)} registered, not {count}, or their details are not read")
        time.sleep(0.5)
    time.sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--socket-dir", required=True)
    parser.add_argument("--n", type=int, default=4000)
    arguments = parser.parse_args()
    arguments.job_id, arguments.ancestors, arguments.warmup, arguments.write = 77, [1], 5.0, False
    gc.disable()
    count = arguments.n if os.geteuid() == 0 else 1
    registered(arguments.port)
    before = private_bytes(arguments.pid)
    trainers = register(arguments, count)
    with_them = private_bytes(arguments.pid)
    end(trainers, arguments.port)
    left = private_bytes(arguments.pid)

    trainers = register(arguments, count)
    config = "ACTIVITIES_LOG_FILE=/tmp/bench.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=100\n"
    request = {"fn": "setKinetOnDemandRequest", "config": config, "job_id": 77, "pids": [0], "process_limit": 100000}
    start = time.perf_counter()
    reply = raw_call(arguments.port, request)
    trigger = time.perf_counter() - start
    triggered = json.loads(reply)["activityProfilersTriggered"]
    assert isinstance(triggered, list)
    end(trainers, arguments.port)
    print(
        json.dumps(
            {
                "registered": count,
                "triggered": len(triggered),
                "trigger_ms": round(trigger * 1e3, 1),
                "bytes_each": round((with_them - before) / count),
                "left_bytes_each": round((left - before) / count),
            }
        )
    )


def register(arguments: argparse.Namespace, count: int) -> list[Trainer]:
    """So many trainers, each polled once and answered, their details read."""
    trainers = [Trainer(index, arguments) for index in range(arguments.n)]
    for trainer in trainers:
        while not trainer.poll(0.0):
            time.sleep(0.001)
        trainer.sock.setblocking(True)
        trainer.sock.settimeout(5)
        trainer.sock.recv(4096)
        trainer.sock.setblocking(False)
    settle(arguments.port, count)
    return trainers


def end(trainers: list[Trainer], port: int) -> None:
    for trainer in trainers:
        trainer.die()
    settle(port, 0)


if __name__ == "__main__":
    main()
