"""Whether the socket of a process can reach the daemon's: one network namespace, or one directory that both see."""

import os
import stat

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.cli.doctor.ipc_checks import ABSTRACT, IPC_NAME
from dynolog.cli.doctor.subject import Subject
from dynolog.sources.beneath import open_beneath, open_root
from dynolog.sources.process_privileges import read_privileges

TOPIC = "socket"
_SHARE = "share a directory (mode 1777) as --ipc_socket_dir of the daemon and KINETO_IPC_SOCKET_DIR of the process"


def reach(subject: Subject, evidence: Evidence, addresses: tuple[str, ...]) -> Finding:
    """By the directory that the process names, else by the abstract name; `addresses` are the daemon's."""
    if directory := subject.environment.get("KINETO_IPC_SOCKET_DIR"):
        return _by_directory(subject, evidence, directory, addresses)
    return _by_namespace(subject, evidence, addresses)


def _by_namespace(subject: Subject, evidence: Evidence, addresses: tuple[str, ...]) -> Finding:
    namespace, daemons = subject.net_namespace, evidence.daemon_net_namespace
    if not namespace:
        return note(TOPIC, "its network namespace cannot be read, so whether it reaches the daemon is not known")
    if namespace != daemons:
        return _elsewhere(subject, evidence, namespace, addresses)
    if ABSTRACT in addresses:
        return ok(TOPIC, f"it is in the daemon's network namespace and reaches {ABSTRACT}")
    if ABSTRACT in subject.sockets.names:
        return wrong(
            TOPIC,
            f"it speaks to {ABSTRACT}, which another process than this daemon holds",
            "ask that daemon, or stop it",
        )
    return wrong(
        TOPIC,
        f"it speaks to {ABSTRACT}, and the daemon listens on {', '.join(addresses)} only",
        _other_address(addresses),
    )


def _other_address(addresses: tuple[str, ...]) -> str:
    paths = [os.path.dirname(address) for address in addresses if address.startswith("/")]
    same = f", or start the process with KINETO_IPC_SOCKET_DIR={paths[0]}" if paths else ""
    return f"start the daemon without --ipc_fabric_name{same}"


def _elsewhere(subject: Subject, evidence: Evidence, namespace: int, addresses: tuple[str, ...]) -> Finding:
    if f"{ABSTRACT} in net:[{namespace}]" in addresses:
        return ok(TOPIC, f"the daemon has joined its network namespace net:[{namespace}]")
    # Without its number, so that the processes of a hundred containers make one finding.
    lead = "it has a network namespace of its own (a container's?)"
    if ABSTRACT in subject.sockets.names:
        return wrong(TOPIC, f"{lead}, where another process holds {ABSTRACT}", "ask that daemon, or stop it")
    joins = any(" in net:[" in address for address in addresses)
    if joins or (evidence.daemon and evidence.daemon.is_on("ipc_namespaces")):
        return wrong(
            TOPIC,
            f"{lead}, which the daemon has not joined: with --ipc_namespaces it looks every 10 s where PyTorch has its socket",
            f"ask again in 20 s; if it stays, the daemon lacks CAP_SYS_ADMIN (`dyno doctor` says), or {_SHARE}",
        )
    return wrong(
        TOPIC,
        f"{lead}, where the daemon's socket is not",
        f"start the daemon as root with --ipc_namespaces, or {_SHARE}",
    )


def _by_directory(subject: Subject, evidence: Evidence, directory: str, addresses: tuple[str, ...]) -> Finding:
    path = f"{directory}/{IPC_NAME}"
    lead = f"KINETO_IPC_SOCKET_DIR={directory} is where it looks for a daemon"
    same = f"start the daemon with --ipc_socket_dir={directory}, with the directory mounted at one place for both"
    try:
        socket, place = _look(evidence.host.path("proc"), subject.pid, path)
    except FileNotFoundError:
        return wrong(TOPIC, f"{lead}, and it sees no {path}", same)
    except OSError as error:
        return note(TOPIC, f"{lead}; whether it sees {path} cannot be told from here ({error.strerror})")
    if not stat.S_ISSOCK(socket.st_mode):
        return wrong(TOPIC, f"{lead}, and {path} is not a socket", same)
    if not any(_is_same(address, socket) for address in addresses if address.startswith("/")):
        return wrong(
            TOPIC,
            f"{lead}, and the socket there is not this daemon's (one that was left behind, or another daemon's)",
            same,
        )
    if not read_privileges(evidence.host, subject.pid).may(place, os.W_OK | os.X_OK):
        return wrong(TOPIC, f"{lead}, and it may not make its own socket there", f"chmod 1777 {directory}")
    return ok(TOPIC, f"it reaches the daemon by {path}")


def _look(proc: str, pid: int, path: str) -> tuple[os.stat_result, os.stat_result]:
    """The socket and its directory as the process sees them. Raises OSError."""
    root = open_root(pid, proc)
    try:
        found = []
        for one in (path, os.path.dirname(path)):
            fd = open_beneath(root, one, os.O_PATH)
            try:
                found.append(os.fstat(fd))
            finally:
                os.close(fd)
        return found[0], found[1]
    finally:
        os.close(root)


def _is_same(address: str, socket: os.stat_result) -> bool:
    try:
        info = os.stat(address)
    except OSError:  # the daemon's own directory is not seen here
        return False
    return (info.st_dev, info.st_ino) == (socket.st_dev, socket.st_ino)
