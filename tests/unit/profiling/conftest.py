"""The profiling room on fakes."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from fakes.profiling import FakeRoom, FakeService


@pytest.fixture
def room() -> Iterator[FakeRoom]:
    """Registry and captures."""
    with ExitStack() as stack:
        yield FakeRoom(stack)


@pytest.fixture
def service() -> Iterator[FakeService]:
    """The same behind the TraceService."""
    with ExitStack() as stack:
        yield FakeService(stack)
