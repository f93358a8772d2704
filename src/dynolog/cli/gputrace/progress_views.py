"""How a request in progress is shown: as lines on change, or not at all. The drawn one is in live_view."""

import sys
from typing import Protocol

from dynolog.cli.gputrace.captures_report import whose
from dynolog.cli.printable import printable
from dynolog.cli.quantities import duration
from dynolog.model.trace_request import RequestProgress


class ProgressView(Protocol):
    """Shows a request while it is followed."""

    def show(self, progress: RequestProgress) -> None:
        """The request stands like this now."""
        ...

    def close(self) -> None:
        """Nothing more comes; what was drawn to be redrawn goes."""
        ...


class NoView:
    """Shows nothing: stdout belongs to one JSON object."""

    def show(self, progress: RequestProgress) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LinesView:
    """A line for each change of each capture, with the fact that caused it."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def show(self, progress: RequestProgress) -> None:
        """Print what is new."""
        for capture in progress.captures:
            seen = self._seen.get(capture.id, 0)
            self._seen[capture.id] = len(capture.history)
            for step in capture.history[seen:]:
                after = duration((step.wall_ns - capture.history[0].wall_ns) / 1e9)
                print(printable(f"{after:>8}  {whose(capture)}: {step.state}: {step.fact}"))
        sys.stdout.flush()

    def close(self) -> None:
        """Nothing is redrawn."""


def choose_view(*, as_json: bool, clock_offset_ns: int) -> ProgressView:
    """A drawn view on a terminal when rich is installed, else lines. The offset is the daemon's clock minus ours."""
    if as_json:
        return NoView()
    if sys.stdout.isatty():
        try:
            from dynolog.cli.gputrace.live_view import LiveView  # noqa: PLC0415 - rich is optional and takes 60 ms
        except ImportError:
            return LinesView()
        return LiveView(clock_offset_ns)
    return LinesView()
