"""How fast one command triggers many daemons: fleet.py [--n 1000]; the daemons are stubs of the protocol in one process beside it.

Prints one JSON object: the whole command from its start to its end, its peak memory, and the floor, the same calls (two a
daemon) made by a bare event loop with as many connections at a time and nothing else.
"""

import argparse
import asyncio
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST_PORT = 23100
AT_A_TIME = 512


def command(ports: range, directory: Path) -> tuple[float, float]:
    """Seconds and peak MB of `dyno gputrace` on all."""
    hosts = directory / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in ports))
    words = [
        sys.executable,
        "-m",
        "dynolog.cli.main",
        "gputrace",
        "--hostfile",
        str(hosts),
        "--log-file",
        "/tmp/t.json",
    ]
    words += ["--no-wait", "--json", "--manifest", str(directory / "manifest.json")]
    started_s = time.perf_counter()
    done = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    elapsed_s = time.perf_counter() - started_s
    manifest = json.loads((directory / "manifest.json").read_bytes())
    acknowledged = sum(host["triggered"] == 2 for host in manifest["hosts"])
    if acknowledged != len(ports):
        sys.exit(f"{acknowledged} of {len(ports)} daemons acknowledged")
    return elapsed_s, used.ru_maxrss / 1024


async def bare_calls(ports: range) -> None:
    """Two calls a daemon, without reading what they answer."""
    turns = asyncio.Semaphore(AT_A_TIME)
    bodies = [json.dumps({"fn": name}).encode() for name in ("getStatus", "setKinetOnDemandRequest")]

    async def ask(port: int) -> None:
        async with turns:
            for body in bodies:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(struct.pack("=i", len(body)) + body)
                await reader.read()
                writer.close()

    await asyncio.gather(*map(ask, ports))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    ports = range(FIRST_PORT, FIRST_PORT + arguments.n)
    words = [sys.executable, str(HERE / "stub_daemons.py"), "--n", str(arguments.n), "--first-port", str(FIRST_PORT)]
    stubs = subprocess.Popen([*words, "--seconds", "120"], stdout=subprocess.PIPE, text=True)
    assert stubs.stdout is not None
    try:
        if stubs.stdout.readline() != "ready\n":
            sys.exit("the stubs did not start")
        with tempfile.TemporaryDirectory(prefix="dynolog-bench-") as directory:
            times = sorted(command(ports, Path(directory)) for _ in range(arguments.runs))
        started_s = time.perf_counter()
        asyncio.run(bare_calls(ports))
        floor_s = time.perf_counter() - started_s
    finally:
        stubs.terminate()
        stubs.wait(10)
    elapsed_s, peak_mb = times[len(times) // 2]
    print(
        json.dumps(
            {
                "daemons": arguments.n,
                "command_s": round(elapsed_s, 3),
                "peak_mb": round(peak_mb, 1),
                "floor_s": round(floor_s, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
