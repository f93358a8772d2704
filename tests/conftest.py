"""Fixtures that every test may use."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fakes.collector_context import HostTree


def pytest_configure() -> None:
    """A shell starts what runs in the background with SIGINT ignored, and programs inherit that: here Ctrl-C is tested."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # How long an example takes is the machine's affair: on a busy one the deadline of 200 ms fails tests of right code.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


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
