"""Which exporters the flags turn on."""

import subprocess
import sys

from dynolog.exporters.registry import EXPORTERS, chosen
from dynolog.model.flag import FlagValue, Settings


def names(**given: FlagValue) -> list[str]:
    flags = [flag for spec in EXPORTERS for flag in spec.flags]
    return [spec.name for spec in chosen(Settings(flags, given))]


def test_the_log_stands_in_when_no_exporter_is_on() -> None:
    assert names() == ["log"]


def test_the_log_is_on_when_asked_for() -> None:
    assert names(use_JSON=True) == ["log"]


def test_the_log_can_be_switched_off_even_then() -> None:
    """A21: nothing is on; the daemon says so at its start."""
    assert names(use_JSON=False) == []


def test_every_exporter_is_turned_on_by_a_bool_that_is_off_by_default() -> None:
    assert [spec.flags[0].default for spec in EXPORTERS] == [False] * len(EXPORTERS)
    assert len({spec.name for spec in EXPORTERS}) == len(EXPORTERS)


def test_exporters_that_are_off_cost_no_memory() -> None:
    """The registry alone: what exporters need is imported when they are on."""
    heavy = ("hashlib", "ssl", "urllib3", "urllib.parse", "google", "grpc", "prometheus_client", "cramjam", "zstandard")
    code = f"import sys, dynolog.exporters.registry; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
