"""Fixtures that every test may use."""

from pathlib import Path

import pytest

from fakes.collector_context import HostTree


@pytest.fixture
def host_tree(tmp_path: Path) -> HostTree:
    """An empty root directory for /proc and /sys files."""
    return HostTree(tmp_path / "root")
