"""Whether trainers can reach the daemon: its sockets, and who else may hold their names."""

import os
import stat
from collections.abc import Iterator

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.ipc.address import describe_holder, is_served
from dynolog.sources.unix_sockets import parse_unix_sockets

IPC_NAME = "dynolog"  # the only name that libkineto speaks to
ABSTRACT = f"@{IPC_NAME}"
SWITCH_ON = "start it with --enable_ipc_monitor (or that line in /etc/dynolog.gflags, then systemctl restart dynolog)"


def check_ipc(evidence: Evidence) -> Iterator[Finding]:
    """On or off, and what the daemon says of it itself."""
    if evidence.status is None:
        return
    ipc = evidence.status.ipc
    if not ipc.enabled:
        yield wrong("ipc", "the daemon's IPC is off: no process can be traced", SWITCH_ON)
        return
    yield ok("ipc", f"the IPC listens on {', '.join(ipc.addresses)}")
    # A short queue is judged by how many poll (kernel_checks.py).
    for notice in ipc.notices:
        if "max_dgram_qlen" not in notice:
            yield note("ipc", notice)
    if not any(address == ABSTRACT or address.startswith("/") for address in ipc.addresses):
        yield wrong(
            "ipc",
            f"the daemon listens as {', '.join(ipc.addresses)}, and PyTorch speaks to {ABSTRACT} only: nothing will register",
            "start it without --ipc_fabric_name",
        )


def check_name(evidence: Evidence) -> Iterator[Finding]:
    """Who holds `@dynolog` in this network namespace, when the daemon that was asked does not."""
    status = evidence.status
    if status is not None and (not status.ipc.enabled or ABSTRACT in status.ipc.addresses):
        return
    try:
        names = {found.name for found in parse_unix_sockets(evidence.host.read("proc/net/unix"))}
    except OSError:
        return
    if ABSTRACT in names:
        holder = describe_holder(f"\0{IPC_NAME}\0".encode(), evidence.host.path("proc"))
        yield wrong(
            "ipc",
            f"{ABSTRACT} is held by {holder}: PyTorch processes register there, and not with the daemon that was asked"
            if status
            else f"{ABSTRACT} is held by {holder}, which cannot be asked here: PyTorch processes register there",
            "name that daemon with --port or --unix, or stop it",
        )


def check_socket_directory(evidence: Evidence) -> Iterator[Finding]:
    """The socket file is there, served, and everybody may make a socket beside it."""
    addresses = evidence.status.ipc.addresses if evidence.status else ()
    for path in (address for address in addresses if address.startswith("/")):
        directory = os.path.dirname(path)
        try:
            served = is_served(os.fsencode(path))
            mode = os.stat(directory).st_mode
        except OSError as error:
            yield note("ipc", f"the socket {path} cannot be looked at from here ({error.strerror})")
            continue
        if not served:
            yield wrong(
                "ipc", f"the socket {path} was removed or replaced: nothing can register there", "restart the daemon"
            )
        elif stat.S_IMODE(mode) & 0o003 != 0o003:
            yield wrong(
                "ipc",
                f"{directory} is not writable by everybody: processes of other users cannot make their own sockets there",
                f"chmod 1777 {directory}",
            )
        else:
            yield ok("ipc", f"{path} is served, and everybody may use its directory")
    wanted = os.environ.get("KINETO_IPC_SOCKET_DIR", "")
    if wanted and addresses and f"{wanted}/{IPC_NAME}" not in addresses:
        yield note(
            "ipc",
            f"KINETO_IPC_SOCKET_DIR={wanted} is set in this shell: processes started from it look for a daemon there, and this one "
            "listens elsewhere",
            f"unset it, or start the daemon with --ipc_socket_dir={wanted}",
        )
