"""How a task comes to share the daemon of its node: by a keeper process that counts tasks, which the first of them starts."""

import contextlib
import os
import socket

from dynolog.cli.dyno_run.node_daemon import COUNTED, NodeDaemon, locked, prepare
from dynolog.cli.dyno_run.node_keeper import start_keeper

_ANSWER_TIMEOUT_S = 5.0


def join_node(node: NodeDaemon) -> str:
    """Make sure that a daemon serves this process, by pid, also after execve(2). Returns what the user should know, or "".

    Raises DynologError and OSError when there is none and none can be started.
    """
    prepare(node.directory)
    with locked(node):
        if node.is_served():
            # By a keeper's daemon or by somebody else's, such as the machine's own, which is not ours to stop.
            _join_keeper(node)
            return ""
        return start_keeper(node, os.getpid())


def _join_keeper(node: NodeDaemon) -> None:
    """Be counted among those that the daemon is kept for, if it has a keeper."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as client,
        contextlib.suppress(OSError),
    ):
        client.settimeout(_ANSWER_TIMEOUT_S)
        client.connect(node.keeper_path)
        client.recv(len(COUNTED))  # once it has answered, this process is counted
