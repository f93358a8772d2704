"""How the daemon is run here: port, service manager, flags, clock of this machine."""

import os
import subprocess
from collections.abc import Iterator

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.sources.clock_sync import ClockSync, read_clock_sync
from dynolog.sources.own_program import module_command, module_environment
from dynolog.sources.tcp_listeners import holders, listener_inodes

_LOOPBACK = ("127.", "[::1]", "localhost")
_CHECK_DEADLINE_S = 10.0


def check_port(evidence: Evidence) -> Iterator[Finding]:
    """Who has the port when no daemon answers on it; whether others can reach the one that does."""
    port = evidence.target.port
    if evidence.status is None:
        if not evidence.target.unix and (inodes := listener_inodes(evidence.host, port)):
            pids = holders(evidence.host, inodes)
            who = (
                f"pid {', '.join(map(str, pids))} ({_name(evidence, pids[0])})"
                if pids
                else "a process that you may not look into"
            )
            yield wrong(
                "port",
                f"port {port} is taken by {who}, which is no dynolog that answers",
                "stop it, or take another --port",
            )
        return
    tcp = [address for address in evidence.status.rpc_addresses if not address.startswith("/")]
    if tcp and all(address.startswith(_LOOPBACK) for address in tcp):
        yield note(
            "port",
            f"the daemon listens on {', '.join(tcp)}: other machines cannot ask it",
            "--rpc_bind_address=:: with --rpc_token_file=FILE; a firewall cannot be seen from here: try "
            f"`dyno --hostname {evidence.status.hostname} status` there",
        )
    else:
        yield ok("port", f"the daemon listens on {', '.join(evidence.status.rpc_addresses) or 'no address'}")


def _name(evidence: Evidence, pid: int) -> str:
    return evidence.host.read_text(f"proc/{pid}/comm") or "ended meanwhile"


def check_service(evidence: Evidence) -> Iterator[Finding]:
    """Whether somebody starts it again when it ends."""
    if evidence.daemon is None or not os.path.isdir(evidence.host.path("run/systemd/system")):
        return
    unit = next((part for part in evidence.daemon.cgroup.split("/") if part.strip().endswith(".service")), "").strip()
    if unit.startswith("dynolog"):
        yield ok("service", f"the daemon runs as {unit}; its watchdog restarts it when it hangs")
    else:
        where = f"in {unit}" if unit else "by hand"
        yield note("service", f"the daemon was started {where}: nothing restarts it", "systemctl enable --now dynolog")


def check_flags(evidence: Evidence) -> Iterator[Finding]:
    """`dynolog --check` with the flags that the daemon was started with: would it start again?"""
    daemon = evidence.daemon
    if daemon is None or evidence.own.uid not in (0, daemon.privileges.uid):
        return
    # Every flag of the running daemon is checked as its own user would type it; nothing is opened or written.
    command = [*module_command("dynolog.daemon.main"), *daemon.arguments, "--check"]
    try:
        done = subprocess.run(
            command,
            env=module_environment(),
            cwd=daemon.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CHECK_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield note("flags", f"the daemon's flags could not be checked ({error})")
        return
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason"]
        yield wrong(
            "flags",
            f"the daemon would not start again with its flags: {said[-1]}",
            f"dynolog {' '.join(daemon.arguments)} --check",
        )
    else:
        yield ok("flags", "the daemon's flags are right")


def check_clock(evidence: Evidence) -> Iterator[Finding]:
    """The kernel's word on this machine's clock."""
    if not evidence.is_local:
        return
    try:
        yield judge_clock(read_clock_sync())
    except OSError as error:
        yield note("clock", f"whether the clock is synchronised cannot be told ({error.strerror or error})")


def judge_clock(clock: ClockSync) -> Finding:
    """The finding."""
    if clock.is_synchronised:
        return ok("clock", f"the clock is synchronised, to {clock.max_error_us / 1000:.0f} ms at worst")
    return note(
        "clock",
        "the kernel says that this clock is not synchronised: records and traces of several hosts may not lie over each other",
        "run one time daemon: systemctl enable --now chronyd (or systemd-timesyncd); in a virtual machine see that the host does",
    )
