"""Where the daemon listens here, and the clock of this machine."""

import os
from collections.abc import Iterator

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.model.errors import DynologError
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetVersion, VersionReply
from dynolog.rpc.unix_path import ROOT_UNIX_PATH, default_unix_path
from dynolog.sources.clock_sync import ClockSync, read_clock_sync
from dynolog.sources.tcp_listeners import holders, listener_inodes

_LOOPBACK = ("127.", "[::1]", "localhost")


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


def check_default_socket(evidence: Evidence) -> Iterator[Finding]:
    """A daemon that does not answer at the port may do so at the socket that it makes unless told otherwise."""
    target = evidence.target
    if evidence.status is not None or target.unix or not evidence.is_local:
        return
    # A user's own daemon has another one, and root's is open to everybody.
    for path in dict.fromkeys((default_unix_path(), ROOT_UNIX_PATH)):
        if not os.path.exists(path):
            continue
        try:
            call(Target(unix=path, timeout_s=target.timeout_s), GetVersion(), VersionReply)
        except DynologError:  # left behind, or closed to us
            continue
        yield wrong("port", f"a daemon answers on {path}, and not on port {target.port}", f"dyno --unix {path} doctor")


def _name(evidence: Evidence, pid: int) -> str:
    return evidence.host.read_text(f"proc/{pid}/comm") or "ended meanwhile"


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
