"""The whole story on one machine: a daemon, a training job of two ranks, one command that traces both.

Run by `make demo`. Needs no GPU and no root. Everything it starts, it stops; the traces stay in demo-out/.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "demo-out"
FETCHED = OUT / "traces"


def say(text: str) -> None:
    print(f"\n\033[1m# {text}\033[0m" if sys.stdout.isatty() else f"\n# {text}", flush=True)


def show(command: list[str]) -> None:
    print("$ " + " ".join(command), flush=True)


@contextlib.contextmanager
def process(command: list[str], log: pathlib.Path, env: dict[str, str]):  # type: ignore[no-untyped-def]
    """A process in a session of its own, ended with all its children; its output goes to `log`."""
    show(command)
    with open(log, "wb") as file:
        started = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, start_new_session=True
        )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGTERM)
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def until(log: pathlib.Path, text: str, count: int, seconds: float, running: subprocess.Popen[bytes]) -> None:
    """Wait until `log` holds `text` so many times."""
    deadline = time.monotonic() + seconds
    while log.read_text(errors="replace").count(text) < count:
        if running.poll() is not None or time.monotonic() > deadline:
            sys.exit(
                f"demo: {log} does not say {text!r}; it ends with:\n"
                + "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            )
        time.sleep(0.1)


def main() -> int:
    bin_directory = pathlib.Path(sys.executable).parent
    torch_python = sys.argv[1]
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    # Sockets in a directory of our own: a daemon that this machine may already run is left alone.
    sockets = pathlib.Path(tempfile.mkdtemp(prefix="dynolog-demo-"))
    dyno = [str(bin_directory / "dyno"), "--unix", str(sockets / "rpc.sock")]
    environment = {
        **os.environ,
        "KINETO_USE_DAEMON": "1",
        "KINETO_IPC_SOCKET_DIR": str(sockets),
        "OMP_NUM_THREADS": "1",
    }
    config = sockets / "libkineto.conf"
    config.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    environment["KINETO_CONFIG"] = str(config)
    try:
        say("The daemon: metrics every second, and trainers may register")
        daemon_log = OUT / "dynolog.log"
        daemon = [
            str(bin_directory / "dynolog"), "--enable_ipc_monitor", "--reporting_interval_s=1", "--port=0",
            f"--rpc_unix_socket={sockets / 'rpc.sock'}", f"--ipc_socket_dir={sockets}", f"--ipc_fabric_name=dynolog-demo-{os.getpid()}",
        ]  # fmt: skip
        training_log = OUT / "training.log"
        training = [
            torch_python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(HERE / "train.py"), "--seconds=300",
        ]  # fmt: skip
        with process(daemon, daemon_log, dict(os.environ)) as running:
            until(daemon_log, "dynolog is ready", 1, 20, running)
            say("A training job of two ranks; KINETO_USE_DAEMON=1 is all that it needs")
            with process(training, training_log, environment) as job:
                until(training_log, " step 1 ", 2, 120, job)
                deadline = time.monotonic() + 30
                while (
                    subprocess.run([*dyno, "ps"], capture_output=True, text=True, check=False).stdout.count("train.py")
                    < 3
                ):
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.2)
                say("Who can be traced?")
                show(["dyno", "ps"])
                subprocess.run([*dyno, "ps"], check=False)
                say(
                    "Trace both ranks for half a second, wait, check the files, bring them here with rank and host counters"
                )
                command = [
                    "gputrace",
                    "--log-file",
                    str(OUT / "trace.json"),
                    "--duration-ms",
                    "500",
                    "--warmup-s",
                    "1",
                    "--fetch",
                    str(FETCHED),
                ]
                show(["dyno", *command])
                code = subprocess.run([*dyno, *command], check=False).returncode
                say("Where did the time go?")
                show(["dyno", "analyze", str(FETCHED)])
                subprocess.run([*dyno, "analyze", str(FETCHED)], check=False)
                say("And the machine itself")
                show(["dyno", "metrics", "--filter", "cpu_*"])
                subprocess.run([*dyno, "metrics", "--filter", "cpu_*"], check=False)
    finally:
        shutil.rmtree(sockets, ignore_errors=True)
    traces = sorted(FETCHED.glob("trace_*.json"))
    say(
        f"{len(traces)} traces are in {OUT.name}/{FETCHED.name}/: open them at ui.perfetto.dev or chrome://tracing"
        if traces
        else "no trace was written"
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
