"""Tables of plain text: columns as wide as their cells, numbers to the right."""

import os
import sys
from collections.abc import Iterable, Sequence

from dynolog.cli.printable import printable


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
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = (), columns: int | None = None
) -> str:
    """Lines of a table; `right` are the columns aligned to the right. Cells are made printable; no row, no table."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if not cells:
        return ""
    widths = [max(len(row[i]) for row in (header, *cells)) for i in range(len(header))]
    to_the_right = frozenset(right)
    lines = []
    for row in (header, *cells):
        padded = (
            cell.rjust(width) if i in to_the_right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(fit("  ".join(padded).rstrip(), columns))
    return "\n".join(lines)
