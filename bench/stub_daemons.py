#!/usr/bin/env python3
"""Many small daemons in one process: the RPC protocol on N loopback ports, for fan-out tests.

  stub_daemons.py --n 1000 --first-port 20000 --seconds 120 [--delay-ms 5] [--dead 1 --mute 1]
Prints "ready" when all listen. --dead ports refuse, --mute ports accept and never answer (taken from the end of the range).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import struct
from collections.abc import Awaitable, Callable

LENGTH = struct.Struct("=i")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--first-port", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--dead", type=int, default=0)
    parser.add_argument("--mute", type=int, default=0)
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, args.n * 3 + 256)), hard))
    calls: dict[str, int] = {}

    def handler(port: int, mute: bool) -> Handler:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                request = json.loads(await reader.readexactly(LENGTH.unpack(await reader.readexactly(4))[0]))
                name = str(request.get("fn"))
                calls[name] = calls.get(name, 0) + 1
                if mute:
                    await asyncio.sleep(args.seconds)
                await asyncio.sleep(args.delay_ms / 1000)
                reply = {
                    "getStatus": {"status": 1},
                    "getVersion": {"version": "0.0.0-stub"},
                    "setKinetOnDemandRequest": {
                        "processesMatched": [port * 10, port * 10 + 1],
                        "eventProfilersTriggered": [],
                        "activityProfilersTriggered": [port * 10, port * 10 + 1],
                        "eventProfilersBusy": 0,
                        "activityProfilersBusy": 0,
                    },
                }.get(name)
                if reply is not None:  # like the original: no answer to what it does not know
                    body = json.dumps(reply).encode()
                    writer.write(LENGTH.pack(len(body)) + body)
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError, ValueError):
                pass
            finally:
                writer.close()

        return serve

    servers = []
    for index in range(args.n - args.dead):
        port = args.first_port + index
        servers.append(
            await asyncio.start_server(handler(port, index >= args.n - args.dead - args.mute), "127.0.0.1", port)
        )
    print("ready", flush=True)
    await asyncio.sleep(args.seconds)
    print(json.dumps(calls), flush=True)


asyncio.run(main())
