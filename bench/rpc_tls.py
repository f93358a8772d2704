"""What TLS costs the daemon, and that its handshakes keep no trainer waiting: rpc_tls.py [--clients 200] [--rounds 5] [--rsa].

Starts one daemon without TLS and one with it (mutual) and prints one JSON object: getStatus p50 by each, the memory (PSS) of each, and the
times in which a trainer got its replies while `--clients` clients at once began handshakes, `--rounds` times.
"""

import argparse
import contextlib
import json
import os
import selectors
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trustme

REQUEST = struct.pack("=i", 18) + b'{"fn":"getStatus"}'
POLL_S = 0.005


@contextlib.contextmanager
def daemon(directory: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    directory.mkdir()
    log = directory / "log"
    words = [
        f"--port={port}",
        "--rpc_bind_address=127.0.0.1",
        f"--rpc_unix_socket={directory}/rpc.sock",
        "--enable_ipc_monitor",
        f"--ipc_socket_dir={directory}",
        f"--ipc_fabric_name=dynolog-bench-{os.getpid()}",
        f"--log_file={log}",
        "--nouse_JSON",
    ]
    started = subprocess.Popen([sys.executable, "-m", "dynolog.daemon.main", *words, *flags])
    try:
        deadline = time.monotonic() + 20
        while not log.exists() or "dynolog is ready" not in log.read_text():
            if time.monotonic() > deadline:
                sys.exit("the daemon did not start")
            time.sleep(0.05)
        yield started, port
    finally:
        started.terminate()
        started.wait(10)


def pss_mb(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return round(next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024, 1)


def p50_ms(port: int, context: ssl.SSLContext | None, count: int = 400) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port)) as raw, _stream(raw, context) as sock:
            sock.sendall(REQUEST)
            while sock.recv(4096):
                pass
        times.append(time.perf_counter() - start)
    return round(sorted(times)[count // 2] * 1e3, 3)


def _stream(raw: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(raw, server_hostname="127.0.0.1") if context is not None else raw


POLLER = """
import os, socket, struct, sys, time
directory, poll_s = sys.argv[1], float(sys.argv[2])
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sock.bind(directory + "/poller")
sock.settimeout(5)
body = struct.pack("=iiqi", 3, 1, 0, os.getpid())
message = struct.pack("=Q32s", len(body), b"req") + body
print("ready", flush=True)
times = []
while os.path.exists(directory + "/go"):
    start = time.perf_counter()
    sock.sendto(message, directory + "/dynolog")
    sock.recv(4096)
    times.append(time.perf_counter() - start)
    time.sleep(poll_s)
times.sort()
print(len(times), times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3, times[-1] * 1e3)
"""


class Client:
    """One of many, on a non-blocking socket."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        raw = socket.create_connection(("127.0.0.1", port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = context.wrap_socket(raw, server_hostname="127.0.0.1", do_handshake_on_connect=False)
        self.sock.setblocking(False)
        self._asked = False

    def goes_on(self) -> bool:
        """As far as it can now; False at the end."""
        with contextlib.suppress(ssl.SSLWantReadError):
            if not self._asked:
                self.sock.do_handshake()
                self.sock.send(REQUEST)
                self._asked = True
            if not self.sock.recv(4096):
                return False
        return True


def crowd(port: int, context: ssl.SSLContext, clients: int) -> float:
    """So many handshakes and requests at once, from one thread; the longest in ms."""
    selector = selectors.DefaultSelector()
    start = time.perf_counter()
    for _ in range(clients):
        client = Client(port, context)
        client.goes_on()
        selector.register(client.sock, selectors.EVENT_READ, client)
    while selector.get_map():
        for key, _ in selector.select(30):
            if key.data.goes_on():
                continue
            selector.unregister(key.fileobj)
            key.data.sock.close()
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rsa", action="store_true", help="RSA 2048 instead of P-256")
    arguments = parser.parse_args()
    answer: dict[str, Any] = {"clients": arguments.clients, "rounds": arguments.rounds}
    with tempfile.TemporaryDirectory(prefix="dynolog-bench-") as name:
        directory = Path(name)
        context, flags = certificates(directory, trustme.KeyType.RSA if arguments.rsa else trustme.KeyType.ECDSA)
        with daemon(directory / "plain") as (running, port):
            answer["plain"] = {"p50_ms": p50_ms(port, None), "pss_mb": pss_mb(running.pid)}
        with daemon(directory / "tls", *flags) as (running, port):
            idle_mb = pss_mb(running.pid)
            answer["tls"] = {"p50_ms": p50_ms(port, context), "pss_idle_mb": idle_mb, "pss_mb": pss_mb(running.pid)}
            answer["trainer"] = under_crowds(directory / "tls", port, context, arguments)
            time.sleep(3)  # the memory is given back when it is calm
            answer["tls"]["pss_after_crowds_mb"] = pss_mb(running.pid)
    print(json.dumps(answer))


def certificates(directory: Path, kind: trustme.KeyType) -> tuple[ssl.SSLContext, list[str]]:
    authority = trustme.CA(key_type=kind)
    authority.cert_pem.write_to_path(str(directory / "ca.crt"))
    server = authority.issue_cert("127.0.0.1", key_type=kind)
    server.private_key_and_cert_chain_pem.write_to_path(str(directory / "server.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    authority.issue_cert("ops-1", key_type=kind).configure_cert(context)
    flags = [
        f"--rpc_tls_cert={directory}/server.pem",
        f"--rpc_tls_key={directory}/server.pem",
        f"--rpc_tls_ca={directory}/ca.crt",
    ]
    return context, flags


def under_crowds(directory: Path, port: int, context: ssl.SSLContext, arguments: argparse.Namespace) -> dict[str, Any]:
    go = directory / "go"
    go.touch()
    poller = subprocess.Popen(
        [sys.executable, "-c", POLLER, str(directory), str(POLL_S)], stdout=subprocess.PIPE, text=True
    )
    assert poller.stdout is not None
    poller.stdout.readline()
    slowest = max(crowd(port, context, arguments.clients) for _ in range(arguments.rounds))
    go.unlink()
    polls, p50, p99, worst = map(float, poller.communicate(timeout=30)[0].split())
    return {
        "polls": int(polls),
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "max_ms": round(worst, 3),
        "crowd_max_ms": round(slowest, 1),
    }


if __name__ == "__main__":
    main()
