"""Fixtures of the tests in this directory."""

from fakes.ipc_fixtures import serve, socket_dir

__all__ = ["serve", "socket_dir"]
