"""A live line for each process of a request, drawn with rich."""

import time
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dynolog.cli.gputrace.captures_report import elapsed_s, is_empty, summary, whose
from dynolog.cli.printable import printable
from dynolog.cli.quantities import duration, size
from dynolog.model.capture import CaptureInfo, CaptureState
from dynolog.model.trace_request import RequestProgress

_REFRESH_PER_S = 4
_BAR = 24
_LEAST_WITH_BARS = 80
_STYLES = {
    CaptureState.PENDING: "dim",
    CaptureState.DELIVERED: "cyan",
    CaptureState.RECORDING: "yellow",
    CaptureState.WRITTEN: "green",
    CaptureState.FAILED: "red",
    CaptureState.EXPIRED: "red",
}


class LiveView:
    """Redraws itself from a thread of rich, so that times go on while the daemon has nothing new."""

    def __init__(self, clock_offset_ns: int, console: Console | None = None) -> None:
        self._offset_ns = clock_offset_ns
        self._progress: RequestProgress | None = None
        self._console = console or Console(highlight=False)
        self._live = Live(
            console=self._console, get_renderable=self._draw, refresh_per_second=_REFRESH_PER_S, transient=True
        )
        self._live.start()

    def show(self, progress: RequestProgress) -> None:
        """Draw this from now on."""
        self._progress = progress
        self._live.refresh()

    def close(self) -> None:
        """Take the lines away; the report follows."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        if self._progress is None:
            return Text("waiting for the daemon", style="dim")
        now_wall_ns = time.time_ns() + self._offset_ns
        return draw(self._progress.captures, now_wall_ns, max(self._console.height - 2, 1), self._console.width)


def draw(captures: Iterable[CaptureInfo], now_wall_ns: int, max_lines: int, columns: int) -> RenderableType:
    """At most so many lines; those that have ended give way to those that go on, and a last line has the sum.

    A narrow terminal has no room for bars.
    """
    ordered = sorted(captures, key=lambda capture: (capture.state.is_final, capture.rank or 0, capture.pid))
    grid = Table.grid(padding=(0, 2))
    bars = columns >= _LEAST_WITH_BARS
    for _ in range(4 if bars else 3):
        grid.add_column(no_wrap=True)  # the remark behind them gives way
    for capture in ordered[:max_lines]:
        time_s = elapsed_s(capture, now_wall_ns)
        bar = ProgressBar(
            total=1.0,
            completed=fraction(capture, time_s),
            width=_BAR,
            complete_style="cyan",  # rich's own colours turn grey on a terminal with sixteen
            finished_style=_STYLES[capture.state],
        )
        grid.add_row(
            Text(whose(capture)),
            Text("empty" if is_empty(capture) else str(capture.state), style=_STYLES[capture.state]),
            Text("" if time_s is None else duration(time_s), justify="right"),
            *((bar,) if bars else ()),
            Text(printable(_remark(capture, time_s)), overflow="ellipsis", no_wrap=True),
        )
    return Group(grid, Text(summary(ordered), style="dim"))


def fraction(capture: CaptureInfo, time_s: float | None) -> float:
    """How far it is, by the time that was expected: full only at the end, and never going back."""
    if capture.state.is_final:
        return 1.0
    if time_s is None or capture.expected_s <= 0:
        return 0.0
    return min(time_s / capture.expected_s, 0.97)


def _remark(capture: CaptureInfo, time_s: float | None) -> str:
    if capture.state.is_final:
        return capture.reason or capture.path
    if capture.file_bytes_so_far:
        return f"writing, {size(capture.file_bytes_so_far)} so far"
    if time_s is not None and capture.expected_s > time_s:
        return f"about {duration(capture.expected_s - time_s)} more"
    return capture.history[-1].fact if capture.history else ""
