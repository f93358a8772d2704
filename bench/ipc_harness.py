#!/usr/bin/env python3
"""The IPC alone, with a handler that does nothing: what the wire and the loop cost.

Serves the daemon's IPC name until it is interrupted or --seconds have passed, then prints its counters as JSON. Point simulated
trainers at it meanwhile.
"""

import argparse
import asyncio
import json
import resource
import signal

import msgspec

from dynolog.ipc.handler import Sender
from dynolog.ipc.listener import IPC_NAME, IpcListener
from dynolog.ipc.wire import ConfigRequest, ContextMessage
from dynolog.model.trainer import Peer


class NothingToDo:
    """Has no config for anybody."""

    def on_request(self, peer: Peer, sender: Sender, request: ConfigRequest) -> str | None:
        return ""

    def on_context(self, peer: Peer, sender: Sender, message: ContextMessage) -> int:
        return 1

    def on_reply_failed(self, peer: Peer, sender: Sender, text: str) -> None:
        return None


class Printed:
    """Notices go to the terminal."""

    def say(self, key: str, sentence: str) -> None:
        print(sentence, flush=True)


async def serve(name: str, socket_dir: str, seconds: float, namespaces: bool) -> None:
    loop = asyncio.get_running_loop()
    listener = IpcListener(NothingToDo(), loop, Printed(), name=name, socket_dir=socket_dir, namespaces=namespaces)
    listener.start()
    print("listening on", *listener.addresses, flush=True)
    done = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, done.set)
    loop.call_later(seconds, done.set)
    await done.wait()
    used = resource.getrusage(resource.RUSAGE_SELF)
    counters = msgspec.structs.asdict(listener.counters)
    print(json.dumps(counters | {"cpu_s": round(used.ru_utime + used.ru_stime, 3), "max_rss_kib": used.ru_maxrss}))
    listener.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default=IPC_NAME)
    parser.add_argument("--socket-dir", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--namespaces", action="store_true")
    args = parser.parse_args()
    asyncio.run(serve(args.name, args.socket_dir, args.seconds, args.namespaces))


if __name__ == "__main__":
    main()
