"""The worst latency of getStatus with many clients at once, each in a process-wide round: rpc_crowd.py --port 1778 --clients 64.

The clients are non-blocking sockets in one thread, so that what is measured is the daemon and not this interpreter's threads.
Prints one JSON object.
"""

import argparse
import json
import selectors
import socket
import struct
import time

REQUEST = struct.pack("=i", 18) + b'{"fn":"getStatus"}'
REPLY_BYTES = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=1778)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=50)
    arguments = parser.parse_args()
    times: list[float] = []
    for _ in range(arguments.rounds):
        selector = selectors.DefaultSelector()
        for _ in range(arguments.clients):
            sock = socket.create_connection(("127.0.0.1", arguments.port), timeout=5)
            sock.setblocking(False)
            sock.send(REQUEST)
            selector.register(sock, selectors.EVENT_READ, time.perf_counter())
        while selector.get_map():
            ready = selector.select(5)
            if not ready:
                raise SystemExit("no answer within 5 s")
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(4096)
                assert len(data) == REPLY_BYTES, data
                times.append(time.perf_counter() - key.data)
                selector.unregister(key.fileobj)
                key.fileobj.close()
        selector.close()
    times.sort()
    print(
        json.dumps(
            {
                "clients": arguments.clients,
                "requests": len(times),
                "p50_ms": round(times[len(times) // 2] * 1e3, 3),
                "max_ms": round(times[-1] * 1e3, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
