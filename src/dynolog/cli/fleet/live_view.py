"""A live table of the traces of many hosts, the slowest host first, drawn with rich."""

import time
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dynolog.cli.fleet.summary import counts, words_for
from dynolog.cli.printable import printable
from dynolog.cli.quantities import duration
from dynolog.fleet.manifest import HostEntry, Manifest, ProcessEntry
from dynolog.fleet.trigger import processes_by_host

_REFRESH_PER_S = 2
_BAR = 20
_LEAST_WITH_BARS = 90
_COLUMNS = {
    "waiting": ("planned", "asked", "pending"),
    "delivered": ("delivered",),
    "recording": ("recording",),
    "written": ("written",),
    "failed": ("empty", "failed", "expired", "not_traced", "unknown"),
}
_STYLES = {"waiting": "dim", "delivered": "cyan", "recording": "yellow", "written": "green", "failed": "red"}


class LiveGroupView:
    """Redraws itself from a thread of rich, so that times go on while nothing is new."""

    def __init__(self, manifest: Manifest, console: Console | None = None) -> None:
        self._manifest = manifest
        self._console = console or Console(highlight=False)
        self._live = Live(
            console=self._console, get_renderable=self._draw, refresh_per_second=_REFRESH_PER_S, transient=True
        )
        self._live.start()

    def show(self) -> None:
        """The next refresh draws it: with many hosts changes come faster than anybody reads."""

    def close(self) -> None:
        """Take the table away; the summary follows."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        return draw(self._manifest, time.time_ns(), max(self._console.height - 4, 1), self._console.width)


def draw(manifest: Manifest, now_wall_ns: int, max_lines: int, columns: int) -> RenderableType:
    """At most so many hosts, those with most to do first, and below them the sum with a bar and the time to go.

    A narrow terminal has no room for bars.
    """
    bars = columns >= _LEAST_WITH_BARS
    by_host = processes_by_host(manifest)
    hosts = [(host, by_host[host.label]) for host in manifest.hosts if host.label in by_host]
    hosts.sort(key=lambda pair: (_progress(pair[0], pair[1], now_wall_ns), pair[0].label))
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("HOST", no_wrap=True)
    for name in _COLUMNS:
        grid.add_column(name.upper(), justify="right", no_wrap=True)
    if bars:
        grid.add_column("", no_wrap=True)
    grid.add_column("REMARK", no_wrap=True, overflow="ellipsis")
    for host, found in hosts[:max_lines]:
        numbers = counts(found)
        cells = [(sum(numbers[word] for word in words), _STYLES[name]) for name, words in _COLUMNS.items()]
        grid.add_row(
            Text(printable(host.label)),
            *(Text(str(number) if number else "·", style=style if number else "dim") for number, style in cells),
            *((_bar(_progress(host, found, now_wall_ns)),) if bars else ()),
            Text(printable(host.error)),
        )
    done = sum(process.is_final for process in manifest.processes)
    left_s = max((_left_s(host, found, now_wall_ns) for host, found in hosts), default=0.0)
    more = f", {len(hosts) - max_lines:,} more hosts" if len(hosts) > max_lines else ""
    eta = f", about {duration(left_s)} more" if left_s > 0 else ""
    total = ProgressBar(total=max(len(manifest.processes), 1), completed=done, width=40, complete_style="green")
    foot = Table.grid(padding=(0, 2))
    foot.add_row(*((total,) if bars else ()), Text(f"{words_for(manifest.processes)}{more}{eta}", style="dim"))
    return Group(grid, foot)


def _bar(done: float) -> ProgressBar:
    return ProgressBar(total=1.0, completed=done, width=_BAR, complete_style="cyan")


def _elapsed_s(host: HostEntry, process: ProcessEntry, now_wall_ns: int) -> float:
    begun_ns = min(process.times.values(), default=0)
    return max(now_wall_ns + (host.clock_offset_ns or 0) - begun_ns, 0) / 1e9 if begun_ns else 0.0


def _progress(host: HostEntry, found: Sequence[ProcessEntry], now_wall_ns: int) -> float:
    """How far a host is, by the time that was expected; full only when all have ended."""
    parts = [
        1.0
        if process.is_final
        else min(_elapsed_s(host, process, now_wall_ns) / process.expected_s, 0.97)
        if process.expected_s
        else 0.0
        for process in found
    ]
    return sum(parts) / len(parts) if parts else 1.0


def _left_s(host: HostEntry, found: Sequence[ProcessEntry], now_wall_ns: int) -> float:
    return max(
        (process.expected_s - _elapsed_s(host, process, now_wall_ns) for process in found if not process.is_final),
        default=0.0,
    )
