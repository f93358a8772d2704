"""A running listener under a name of its own."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from fakes.ipc_loop import LoopThread, Serve, Served


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start listeners; each has an IPC name of its own unless one is given."""
    with ExitStack() as stack:

        def start(socket_dir: str = "", name: str = "") -> Served:
            thread = stack.enter_context(LoopThread())
            served = Served(thread, socket_dir, name or f"dynolog-{uuid.uuid4()}")
            stack.callback(served.close)
            return served.start()

        yield start


@pytest.fixture
def socket_dir() -> Iterator[str]:
    """An empty directory with a short path: a socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ipc") as path:
        os.chmod(path, 0o1777)
        yield path
