"""The hosts' counters in a file of several ranks: one process a host, and each sample once, though every rank of the host brought it."""

from collections.abc import Iterator, Mapping

import numpy as np

from dynolog.analysis.editing.edits import metadata
from dynolog.analysis.editing.event_texts import TextBatch
from dynolog.analysis.editing.host_tracks import PROCESS_NAME
from dynolog.analysis.editing.rewriting import Filter
from dynolog.analysis.reading.columns import Mask, TrackName

# Above the numbers that ranks get.
_FIRST_PID = 1 << 31


class HostProcesses:
    """Their numbers and names. `host` is what tells hosts apart: a rank of an unknown host has one of its own."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._seen: dict[str, set[tuple[object, int]]] = {}

    def of(self, host: str, names: Mapping[int | str, TrackName]) -> dict[int | str, int]:
        """The new number of the process of counters of a rank on this host; none where its trace has no such process."""
        own = [pid for pid, known in names.items() if known.name == PROCESS_NAME]
        return {pid: self._pids.setdefault(host, _FIRST_PID + len(self._pids)) for pid in own}

    def once(self, host: str, own: Mapping[int | str, int], shift_ns: int) -> Filter:
        """Leaves out samples that an earlier rank of the host had at the same time; `shift_ns` makes times those of the whole file."""
        seen = self._seen.setdefault(host, set())

        def is_new(sample: tuple[object, int]) -> bool:
            if sample in seen:
                return False
            seen.add(sample)
            return True

        def passes(batch: TextBatch) -> Mask:
            return np.fromiter(
                (
                    event.ph != "C" or event.pid not in own or is_new((event.name, at_ns + shift_ns))
                    for event, at_ns in zip(batch.events, batch.at_ns.tolist(), strict=True)
                ),
                np.bool_,
                len(batch.events),
            )

        return passes

    def names(self) -> Iterator[bytes]:
        """Metadata events: above the ranks, by host."""
        for place, (host, pid) in enumerate(self._pids.items()):
            yield metadata("process_name", pid, 0, "name", f"{PROCESS_NAME} · {host}")
            yield metadata("process_sort_index", pid, 0, "sort_index", place)
