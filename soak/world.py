"""A daemon with three exporters under load, and what can be seen of it from outside."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from soak.load import call

REPOSITORY = Path(__file__).resolve().parents[1]
RECEIVER = "otlp.soak.test"
DISK_MB = 8
# Free for certain: the network namespace is our own.
SCRAPED_PORT = 9464
# The daemon as its unit runs it; its meters too, so that they measure its delays and not their own.
_PRIORITY = ("nice", "-n", "-5")
_RESOLV = "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n"


class Receiver:
    """Takes OTLP over HTTP, one request a connection; while `is_silent` it takes them and never answers."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_answering = threading.Event()
        self.is_answering.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.is_answering.wait()
                outer.taken += 1
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.send_header("Connection", "close")
                    self.end_headers()
                self.close_connection = True

            def log_message(self, *_arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


class Load:
    """A process of soak.load, and the sums of what it has printed."""

    def __init__(self, *arguments: str) -> None:
        command = [*_PRIORITY, sys.executable, "-m", "soak.load", *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY)
        self.pid = self._process.pid
        self._lock = threading.Lock()
        self._sums: Counter[str] = Counter()
        self._longest_ms = 0.0
        self.has_begun = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            counts = json.loads(line)
            with self._lock:
                self._longest_ms = max(self._longest_ms, counts.pop("longest_ms"))
                self._sums.update(counts)
            self.has_begun.set()

    def take(self) -> dict[str, float]:
        """The sums since the last call."""
        with self._lock:
            taken = dict(self._sums) | {"longest_ms": self._longest_ms}
            self._sums.clear()
            self._longest_ms = 0.0
        return taken

    def forget(self) -> None:
        """What it waits for will never come."""
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)


class World:
    """Everything. Must be made in network and mount namespaces of its own, as root."""

    def __init__(
        self,
        directory: Path,
        *,
        trainers: int,
        interval_s: float,
        rpc_per_s: float,
        lost_after_s: float,
        scale: float = 1.0,
    ) -> None:
        """`scale` is the part of the full churn that this run has; a poll without an answer for `lost_after_s` is lost."""
        self.directory = directory
        self.trainer_count = trainers
        self.scale = scale
        self.disk, self.control = directory / "disk", directory / "control"
        for path in (self.disk, self.control, self.control / "mount"):
            path.mkdir(parents=True)
        self._mount("-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.disk))
        self._mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(self.control / "mount"))
        self.hosts, self.resolv = directory / "hosts", directory / "resolv.conf"
        self.name_is_known(True)
        self.resolv.write_text(_RESOLV)
        self._mount("--bind", str(self.hosts), "/etc/hosts")
        self._mount("--bind", str(self.resolv), "/etc/resolv.conf")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # As docs/install.md says: each namespace has its own.
        Path("/proc/sys/net/unix/max_dgram_qlen").write_text("512")
        # A name server that never answers.
        self._dead = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._dead.bind(("127.0.0.53", 53))
        self.receiver = Receiver()
        self.unix = directory / "rpc.sock"
        self.clock = directory / "clock"
        self.set_clock(0)
        self._start(fake_clock=False)
        patience = ("--lost-after", str(lost_after_s))
        self.trainers = Load("trainers", "--n", str(trainers), "--interval", str(interval_s), *patience)
        self.floor = Load("floor")
        self.rpc = Load(
            "rpc", "--socket", str(self.unix), "--per-s", str(rpc_per_s), "--scrape", str(SCRAPED_PORT), *patience
        )

    @staticmethod
    def _mount(*arguments: str) -> None:
        subprocess.run(["mount", *arguments], check=True)

    def _start(self, *, fake_clock: bool) -> None:
        self._output: IO[bytes] = (self.directory / "output").open("ab")
        self.daemon = subprocess.Popen(
            [
                *_PRIORITY,
                sys.executable,
                "-m",
                "soak.faulty_daemon",
                f"--rpc_unix_socket={self.unix}",
                "--kernel_monitor_reporting_interval_s=1",
                "--enable_ipc_monitor",
                "--ipc_namespaces",
                f"--log_file={self.disk / 'dynolog.log'}",
                "--log_rotate_mb=0.5",
                "--log_keep=2",
                "--use_file",
                f"--file_path={self.disk / 'metrics.jsonl'}",
                "--file_rotate_mb=1",
                "--file_keep=2",
                "--use_prometheus",
                f"--prometheus_port={SCRAPED_PORT}",
                "--use_otlp",
                f"--otlp_endpoint=http://{RECEIVER}:{self.receiver.port}",
                "--otlp_timeout_ms=2000",
                f"--spool_dir={self.disk / 'spool'}",
                "--collector_deadline_s=1",
                "--cpu_budget_pct=100",
            ],
            cwd=REPOSITORY,
            env={**os.environ, **(self._fake_clock() if fake_clock else {}), "SOAK_CONTROL": str(self.control)},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        self.wait_for(lambda: self.status()["status"] == 1, "the daemon answers")

    def _fake_clock(self) -> dict[str, str]:
        (library, *_) = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        return {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set_clock(self, offset_s: int) -> None:
        """The wall clock of a daemon with a fake one is so far off, within a second."""
        changed = self.clock.with_suffix(".new")
        changed.write_text(f"{offset_s:+d}s\n")
        changed.rename(self.clock)

    def name_is_known(self, known: bool) -> None:
        """Whether the receiver's name is in the hosts file; else the dead name server is asked."""
        self.hosts.write_text(f"127.0.0.1 localhost {RECEIVER if known else ''}\n")

    # --- what can be seen -----------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """`getStatus` with everything. Raises OSError, ValueError."""
        return call(str(self.unix), {"fn": "getStatus", "verbose": True})

    def exporter(self, name: str) -> dict[str, Any]:
        """The state of one exporter."""
        return next(dict(one) for one in self.status()["daemon"]["exporters"] if one["name"] == name)

    def collector(self, name: str) -> dict[str, Any]:
        """The state of one collector."""
        return next(dict(one) for one in self.status()["daemon"]["collectors"] if one["name"] == name)

    def words(self) -> str:
        """What a person is told by `dyno status --verbose`."""
        dyno = subprocess.run(
            [sys.executable, "-m", "dynolog.cli.main", "--unix", str(self.unix), "status", "--verbose"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return dyno.stdout + dyno.stderr

    def log(self) -> str:
        """What the daemon printed, and its log, files that were rotated away included."""
        parts = [
            self.directory / "output",
            *sorted(self.disk.glob("dynolog.log*"), key=lambda path: path.stat().st_mtime),
        ]
        return "\n".join(part.read_text(errors="replace") for part in parts)

    def wait_for(self, ask: Callable[[], object], what: str, timeout_s: float = 30.0) -> None:
        """Until this is true. Raises AssertionError; the daemon that is gone also ends it."""
        deadline, pause = time.monotonic() + timeout_s, threading.Event()
        while True:
            with contextlib.suppress(OSError, ValueError, StopIteration, KeyError):
                if ask():
                    return
            assert self.daemon.poll() is None, f"the daemon ended with {self.daemon.returncode}: {self.log()[-3000:]}"
            assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}; {self.log()[-2000:]}"
            pause.wait(0.1)

    def usage(self) -> dict[str, float]:
        """Open files, threads and RSS (MB) of the daemon, as the kernel has them."""
        directory = f"/proc/{self.daemon.pid}"
        fields = dict(line.split(":", 1) for line in Path(directory, "status").read_text().splitlines())
        return {
            "open_files": len(os.listdir(f"{directory}/fd")),
            "threads": int(fields["Threads"]),
            "rss_mb": int(fields["VmRSS"].split()[0]) / 1024,
        }

    # --- its end --------------------------------------------------------------------------------------------------------

    def kill_and_restart(self, *, fake_clock: bool = False) -> None:
        """As the kernel's OOM killer does, and the service manager after it; `fake_clock`: `set_clock` works then."""
        self.daemon.kill()
        self.daemon.wait()
        self.trainers.forget()
        self._start(fake_clock=fake_clock)
        self.trainers.forget()

    def close(self) -> int:
        """End everything; the daemon's exit code."""
        for load in (self.trainers, self.rpc, self.floor):
            load.close()
        self.receiver.is_answering.set()
        self.daemon.send_signal(signal.SIGCONT)
        self.daemon.terminate()
        try:
            return self.daemon.wait(20)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            return self.daemon.wait()
        finally:
            self._output.close()
