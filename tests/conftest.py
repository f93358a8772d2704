"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest

from fakes.collector_context import HostTree


@pytest.fixture
def host_tree(tmp_path: Path) -> HostTree:
    """An empty root directory for /proc and /sys files."""
    return HostTree(tmp_path / "root")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With DYNOLOG_NO_SKIPS a skipped test fails the run: what is skipped there is a test that the run should have provided for."""
    if not os.environ.get("DYNOLOG_NO_SKIPS") or exitstatus:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line("DYNOLOG_NO_SKIPS is set, and tests were skipped: see their reasons above", red=True)
