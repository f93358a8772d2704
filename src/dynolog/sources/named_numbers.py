"""Files of lines `name number` (`/proc/vmstat`, `/proc/meminfo`, numastat, the AER counters)."""

from collections.abc import Iterable


def parse(data: bytes, names: Iterable[str]) -> dict[str, int]:
    """The numbers of those `names` that are there; a line that is not `name number` costs only itself. Never raises."""
    text = data.decode("latin-1")
    tokens = text.split()
    if len(tokens) == 2 * text.count("\n"):
        table = dict(zip(tokens[::2], tokens[1::2], strict=True))
    else:
        # Something is out of step: line by line.
        table = {parts[0]: parts[1] for line in text.split("\n") if len(parts := line.split()) == 2}
    numbers: dict[str, int] = {}
    for name in names:
        try:
            numbers[name] = int(table[name])
        except (KeyError, ValueError):
            continue
    return numbers
