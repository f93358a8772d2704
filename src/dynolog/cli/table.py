"""Tables of plain text: columns as wide as their cells, numbers to the right."""

import os
import sys
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from types import MappingProxyType

from dynolog.cli.printable import printable

_NONE_YIELDS: Mapping[int, int] = MappingProxyType({})
_GAP = 2  # between columns


def terminal_columns() -> int | None:
    """Width of the terminal that stdout is, or None when it is a file or a pipe: nothing is cut then."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        return None


def fit(line: str, columns: int | None) -> str:
    """The line, cut to a terminal's width with a mark that it was."""
    if columns is None or len(line) <= columns:
        return line
    return line[: max(columns - 1, 0)] + "…"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Iterable[int] = (),
    columns: int | None = None,
    yielding: Mapping[int, int] = _NONE_YIELDS,
) -> str:
    """Lines of a table; `right` are the columns aligned to the right. Cells are made printable; no row, no table.

    On a terminal that is too narrow, the columns in `yielding` become narrower in turn, each down to the width that it has there: their
    long cells lose their middle. What still does not fit is cut at the end of the line.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    if not cells:
        return ""
    widths = [max(len(row[i]) for row in (header, *cells)) for i in range(len(header))]
    if columns is not None:
        _narrow(widths, columns, yielding)
        cells = [
            [
                _without_middle(cell, width) if i in yielding else cell
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            for row in cells
        ]
    to_the_right = frozenset(right)
    lines = []
    for row in (header, *cells):
        padded = (
            cell.rjust(width) if i in to_the_right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(fit((" " * _GAP).join(padded).rstrip(), columns))
    return "\n".join(lines)


def _narrow(widths: MutableSequence[int], columns: int, yielding: Mapping[int, int]) -> None:
    for i, least in yielding.items():
        excess = sum(widths) + _GAP * (len(widths) - 1) - columns
        if excess > 0:
            widths[i] = min(widths[i], max(widths[i] - excess, least))


def _without_middle(cell: str, width: int) -> str:
    """The cell in `width` characters; head and tail stay, for names differ in either."""
    if len(cell) <= width:
        return cell
    head = width // 2
    tail = width - head - 1
    return cell[:head] + "…" + cell[len(cell) - tail :]
