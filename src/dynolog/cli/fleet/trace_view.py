"""How the traces of many hosts are shown while they go on: a line for each change, or nothing. The drawn one is in fleet_live_view."""

import sys
import time
from typing import Protocol

from dynolog.cli.fleet.summary import word_of, words_for
from dynolog.cli.gputrace.captures_report import who
from dynolog.cli.printable import printable
from dynolog.cli.quantities import duration
from dynolog.fleet.manifest import Manifest
from dynolog.fleet.trigger import processes_by_host

_MOST_LINES = 64


class GroupView(Protocol):
    """Shows a manifest while it changes."""

    def show(self) -> None:
        """It has changed."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class NoView:
    """Shows nothing: stdout belongs to one JSON object."""

    def show(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LinesView:
    """A line for each change of a process; with very many of them, one for each change of the sum, at most one a second."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._started_s = time.monotonic()
        self._seen: dict[int, str] = {}
        self._sum = ""
        self._next_s = 0.0

    def show(self) -> None:
        """Print what is new."""
        after = duration(time.monotonic() - self._started_s)
        if len(self._manifest.processes) > _MOST_LINES:
            self._show_sum(after)
        else:
            for index, process in enumerate(self._manifest.processes):
                word = word_of(process)
                if self._seen.get(index) != word:
                    self._seen[index] = word
                    reason = f": {process.reason}" if process.reason else ""
                    name = who(process.pid, process.host_pid, process.rank)
                    print(printable(f"{after:>8}  {process.host}, {name}: {word.replace('_', ' ')}{reason}"))
        sys.stdout.flush()

    def _show_sum(self, after: str) -> None:
        text = words_for(self._manifest.processes)
        if text != self._sum and time.monotonic() >= self._next_s:
            self._sum = text
            self._next_s = time.monotonic() + 1
            hosts = processes_by_host(self._manifest)
            done = sum(all(process.is_final for process in found) for found in hosts.values())
            print(f"{after:>8}  {text}; {done:,} of {len(hosts):,} hosts done")

    def close(self) -> None:
        """Nothing is redrawn."""


def choose_view(manifest: Manifest, *, as_json: bool) -> GroupView:
    """A drawn view on a terminal when rich is installed, else lines."""
    if as_json:
        return NoView()
    if sys.stdout.isatty():
        try:
            from dynolog.cli.fleet.live_view import LiveGroupView  # noqa: PLC0415 - rich is optional and takes 60 ms
        except ImportError:
            return LinesView(manifest)
        return LiveGroupView(manifest)
    return LinesView(manifest)
