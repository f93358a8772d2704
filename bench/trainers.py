#!/usr/bin/env python3
"""Simulated trainers: N clients that behave on the IPC as libkineto does (see ../protocol.md, sections 2 and 3).

Each client has its own datagram socket, polls every --interval seconds, waits for its reply at most 90 ms, and counts a
later one as late (libkineto would take it for the answer to its next poll). On a config it acts it out: warm-up,
"recording" (polls without the activities bit), and with --write a small Chrome trace under the name libkineto would
use. Prints one JSON object. Only the standard library; local sockets only; bounded by --seconds.

As root each trainer is a real process (a forked child that sleeps) whose pid goes with every message as the sender's
credentials, as a real trainer's would; --kill-at T kills half of them T seconds in, with their requests in flight. Without
root all messages carry this process's own credentials and pids from 100000 up are merely claimed.

  trainers.py --n 512 --interval 5 --seconds 60
  trainers.py --n 2 --interval 1 --seconds 120 --job-id 7 --write        # stands in for two ranks
  trainers.py --n 64 --flood --seconds 5                                 # as fast as replies come
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import selectors
import signal
import socket
import struct
import time
import uuid

HEADER = struct.Struct("=Q32s")
REQUEST = struct.Struct("=iiq")
REPLY_WINDOW_S = 0.090


def address(name: str, directory: str | None) -> bytes | str:
    return os.path.join(directory, name) if directory else b"\0" + name.encode() + b"\0"


def fork_sleeper() -> int:
    pid = os.fork()
    if pid == 0:
        os.closerange(3, 65536)
        signal.alarm(3600)
        while True:
            signal.pause()
    return pid


class Trainer:
    def __init__(self, index: int, args: argparse.Namespace) -> None:
        self.args = args
        self.alive = True
        self.child = fork_sleeper() if os.geteuid() == 0 else 0
        self.pid = self.child or 100_000 + index
        self.credentials = (
            [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("=iii", self.child, os.geteuid(), os.getegid()))]
            if self.child
            else []
        )
        self.name = "dynoconfigclient" + str(uuid.uuid4())
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(address(self.name, args.socket_dir))
        self.sock.setblocking(False)
        self.sent_at: float | None = None
        self.recording_until = 0.0
        self.trace: tuple[str, float, float] | None = None
        self.configs = 0

    def poll(self, now: float) -> bool:
        busy = now < self.recording_until
        pids = [self.pid, *self.args.ancestors]
        body = REQUEST.pack(1 if busy else 3, len(pids), self.args.job_id) + struct.pack(f"={len(pids)}i", *pids)
        try:
            message = HEADER.pack(len(body), b"req") + body
            self.sock.sendmsg([message], self.credentials, 0, address("dynolog", self.args.socket_dir))
        except OSError:
            return False
        self.sent_at = now
        return True

    def die(self) -> None:
        """As a process that is killed: the socket closes with whatever was in flight."""
        self.alive = False
        self.sock.close()
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        if self.args.socket_dir:
            os.unlink(os.path.join(self.args.socket_dir, self.name))

    def on_config(self, text: str, now: float) -> None:
        self.configs += 1
        options = dict(line.strip().split("=", 1) for line in text.splitlines() if "=" in line)
        warmup = float(options.get("ACTIVITIES_WARMUP_PERIOD_SECS", self.args.warmup))
        duration = int(options.get("ACTIVITIES_DURATION_MSECS", 500)) / 1000
        start = int(options.get("PROFILE_START_TIME", 0)) / 1000
        delay = max(start - time.time(), 0) if start else 1 + warmup
        self.recording_until = now + delay + duration
        path = options.get("ACTIVITIES_LOG_FILE", "/tmp/libkineto_activities.json")
        stem, dot, suffix = path.rpartition(".json")
        self.trace = (f"{stem}_{self.pid}.json{suffix}" if dot else path, delay, duration)

    def finish(self) -> None:
        if self.trace is None:
            return
        (path, _, duration), self.trace = self.trace, None
        if not self.args.write:
            return
        base = time.time_ns() // 1_000_000_000 * 1_000_000_000
        now_us = (time.time_ns() - base) / 1000
        events = [
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": "aten::mm",
                "pid": self.pid,
                "tid": self.pid,
                "ts": now_us - duration * 1e6 + i * 100,
                "dur": 90,
            }
            for i in range(int(duration * 1e4))
        ]
        temporary = path + ".tmp"
        with open(temporary, "w") as file:
            json.dump({"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": events, "traceName": path}, file)
        os.rename(temporary, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--job-id", type=int, default=0)
    parser.add_argument("--kill-at", type=float, default=0.0, help="kill every other trainer this many seconds in")
    parser.add_argument("--ancestors", type=lambda s: [int(p) for p in s.split(",")], default=[1])
    parser.add_argument("--socket-dir", default=os.environ.get("KINETO_IPC_SOCKET_DIR"))
    parser.add_argument("--warmup", type=float, default=5.0)
    parser.add_argument("--write", action="store_true", help="write trace files")
    parser.add_argument("--flood", action="store_true", help="poll again as soon as a reply arrives")
    args = parser.parse_args()

    selector = selectors.DefaultSelector()
    trainers = [Trainer(i, args) for i in range(args.n)]
    for trainer in trainers:
        selector.register(trainer.sock, selectors.EVENT_READ, trainer)
    start = time.monotonic()
    due = [(start + args.interval * i / args.n * (0 if args.flood else 1), i) for i in range(args.n)]
    heapq.heapify(due)
    latencies: list[float] = []
    polls = unsent = late = 0
    killed = not args.kill_at
    while (now := time.monotonic()) < start + args.seconds:
        if not killed and now >= start + args.kill_at:
            killed = True
            for trainer in trainers[::2]:
                trainer.poll(now)
                selector.unregister(trainer.sock)
                trainer.die()
        while due and due[0][0] <= now:
            _, index = heapq.heappop(due)
            trainer = trainers[index]
            if not trainer.alive:
                continue
            if trainer.trace and now >= trainer.recording_until:
                trainer.finish()
            polls += 1
            unsent += not trainer.poll(time.monotonic())
            heapq.heappush(due, (now + (0.5 if args.flood else args.interval), index))
        for key, _ in selector.select(max(min(due[0][0] - time.monotonic(), 0.05), 0) if due else 0.05):
            trainer = key.data
            try:
                data = trainer.sock.recv(65536)
            except OSError:
                continue
            now = time.monotonic()
            if trainer.sent_at is not None:
                latencies.append(now - trainer.sent_at)
                late += now - trainer.sent_at > REPLY_WINDOW_S
                trainer.sent_at = None
            size, _ = HEADER.unpack_from(data)
            if size:
                trainer.on_config(data[HEADER.size : HEADER.size + size].decode(errors="replace"), now)
            if args.flood:
                polls += 1
                unsent += not trainer.poll(now)
    for trainer in trainers:
        if trainer.alive:
            trainer.finish()
            trainer.die()
    latencies.sort()

    def at(share: float) -> float | None:
        return round(latencies[min(int(len(latencies) * share), len(latencies) - 1)] * 1e3, 3) if latencies else None

    print(
        json.dumps(
            {
                "trainers": args.n,
                "polls": polls,
                "unsent": unsent,
                "replies": len(latencies),
                "late_over_90ms": late,
                "p50_ms": at(0.5),
                "p99_ms": at(0.99),
                "max_ms": at(1.0),
                "replies_per_s": round(len(latencies) / args.seconds, 1),
                "configs": sum(t.configs for t in trainers),
            }
        )
    )


if __name__ == "__main__":
    main()
