"""The same thing said of many hosts, once."""

import re
from collections.abc import Iterable, Iterator

from dynolog.cli.quantities import count
from dynolog.fleet.host_fold import folded

_MOST_LINES = 20
# Numbers and lists of them: pids, times, ids of captures.
_NUMBERS = re.compile(r"(?:\b[0-9a-f]{8,}(?:\.[0-9]+)?\b|[0-9]+(?:\.[0-9]+)?)(?:, [0-9]+)*")


def lines_by_reason(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """`gpu[03,07]: the disk is full` of (host, reason), the most frequent reason first; beyond 20 reasons the rest is counted.

    Reasons that differ in numbers only are one: those of the first host are shown.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for host, reason in said:
        alike.setdefault(_NUMBERS.sub("#", reason), []).append((host, reason))
    ordered = sorted(alike.values(), key=lambda pairs: -len(pairs))
    for pairs in ordered[:_MOST_LINES]:
        first_host, first_reason = pairs[0]
        differs = any(reason != first_reason for _, reason in pairs)
        example = f" (so {first_host}; the numbers of the others differ)" if differs else ""
        yield f"{folded([host for host, _ in pairs])}: {first_reason}{example}"
    if left := ordered[_MOST_LINES:]:
        hosts = {host for pairs in left for host, _ in pairs}
        yield f"... and {count(len(hosts), 'more host')} for {count(len(left), 'other reason')}"
