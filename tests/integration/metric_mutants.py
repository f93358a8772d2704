"""Spoils one metric of a collector at a time and runs the collector's own unit tests on it; prints each that no test misses.

Run as a program with the name of a collector, because each run needs an interpreter whose modules are its own.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import CollectorSpec, DeviceReport, Values
from dynolog.model.metric import Catalogue, Metric

_TESTS = Path(__file__).resolve().parents[1] / "unit" / "collectors"
_PASSED, _FAILED, _NOTHING = 0, 1, 5


def tests_of(spec: CollectorSpec) -> list[str]:
    """The test modules that import the collector by its own name."""
    module = spec.factory.__module__.rpartition(".")[2]
    imports = re.compile(rf"collectors\.{module}\b|collectors import [^\n]*\b{module}\b")
    return sorted(str(path) for path in _TESTS.glob("test_*.py") if imports.search(path.read_text()))


def spoiled(compute: Callable[..., Values], metric: Metric, catalogue: Catalogue) -> Callable[..., Values]:
    """`compute` with 1 too much in every value of `metric`, or another text."""

    def spoil(values: dict[str, Any]) -> None:
        for key, value in values.items():
            series = catalogue.resolve(key)
            if series is not None and series.metric is metric:
                values[key] = value + "x" if isinstance(value, str) else value + 1

    def wrong(*arguments: Any) -> Values:
        values = compute(*arguments)
        spoil(values)
        if isinstance(values, DeviceReport):
            for device in values.devices:
                spoil(device.values)
                spoil(device.labels)  # type: ignore[arg-type] # collectors make them as dicts
        return values

    return wrong


class Runs:
    """A plugin that runs the collected tests once for each of `states`, in a forked child that is brought into that state.

    Starting pytest takes longer than most of the tests do, so it is started once. `codes` are the exit codes.
    """

    def __init__(self, states: Sequence[Callable[[], None]]) -> None:
        self._states = states
        self.codes: list[int] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of pytest's own loop."""
        for state in self._states:
            pid = os.fork()
            if pid == 0:
                sink = os.open(os.devnull, os.O_WRONLY)
                os.dup2(sink, 1)
                os.dup2(sink, 2)
                state()
                os._exit(_run_all(session))
            self.codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return True


def _run_all(session: pytest.Session) -> int:
    """As pytest does with -x."""
    items = session.items
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return _FAILED
    return _PASSED if items else _NOTHING


def run(tests: list[str], states: Sequence[Callable[[], None]]) -> list[int]:
    """The exit codes of the tests in each of the states."""
    runs = Runs(states)
    # Modules that were imported before pytest keep plain asserts, which is all that is needed here.
    ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    pytest.main(["-q", "-p", "no:cacheprovider", *ignored, *tests], plugins=[runs])
    return runs.codes


def main(name: str) -> int:
    """0 when the tests notice every spoiled metric."""
    (spec,) = (spec for spec in COLLECTORS if spec.name == name)
    catalogue = Catalogue(metric for one in COLLECTORS for metric in one.metrics)
    tests = tests_of(spec)
    collector: Any = spec.factory
    compute = collector.compute
    spoilt = [spoiled(compute, metric, catalogue) for metric in spec.metrics]
    states = [lambda wrong=wrong: setattr(collector, "compute", wrong) for wrong in (compute, *spoilt)]
    as_it_is, *codes = (tests and run(tests, states)) or [_NOTHING]
    if as_it_is != _PASSED:
        sys.stdout.write(f"the tests of {name} do not pass as they are: {tests}\n")
        return 1
    unnoticed = [metric for metric, code in zip(spec.metrics, codes, strict=True) if code != _FAILED]
    for metric in unnoticed:
        sys.stdout.write(f"{metric.name} ({metric.scope}): no test has its value\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
