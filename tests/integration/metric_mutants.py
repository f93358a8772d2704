"""Spoils one metric of a collector at a time and runs the collector's own unit tests on it; prints each that no test misses.

Run as a program with the name of a collector, because each run needs an interpreter whose modules are its own.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import CollectorSpec, DeviceReport, Values
from dynolog.model.metric import Catalogue, Metric

_TESTS = Path(__file__).resolve().parents[1] / "unit" / "collectors"
_PASSED, _FAILED = 0, 1


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


def run(tests: list[str], prepare: Callable[[], None]) -> int:
    """The exit code of pytest in a forked child, where everything is imported already."""
    pid = os.fork()
    if pid == 0:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        prepare()
        # Modules that were imported before pytest keep plain asserts, which is all that is needed here.
        ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        os._exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *ignored, *tests]))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(name: str) -> int:
    """0 when the tests notice every spoiled metric."""
    (spec,) = (spec for spec in COLLECTORS if spec.name == name)
    catalogue = Catalogue(metric for one in COLLECTORS for metric in one.metrics)
    tests = tests_of(spec)
    collector: Any = spec.factory
    compute = collector.compute
    if not tests or run(tests, lambda: None) != _PASSED:
        sys.stdout.write(f"the tests of {name} do not pass as they are: {tests}\n")
        return 1
    unnoticed = 0
    for metric in spec.metrics:
        wrong = spoiled(compute, metric, catalogue)
        if run(tests, lambda wrong=wrong: setattr(collector, "compute", wrong)) != _FAILED:  # type: ignore[misc]
            unnoticed += 1
            sys.stdout.write(f"{metric.name} ({metric.scope}): no test has its value\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
