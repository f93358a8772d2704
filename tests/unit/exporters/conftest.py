"""Fixtures of the tests in this directory."""

from fakes.ipc_fixtures import socket_dir

__all__ = ["socket_dir"]
