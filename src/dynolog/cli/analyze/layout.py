"""How wide the report of dyno analyze is, and what fits into it."""

import textwrap

from dynolog.analysis.wording import short
from dynolog.cli.table import terminal_columns

_WIDTH = 100
_SHORTEST_NAME = 16


def width() -> int:
    """Of the terminal, between 80 and 120 columns; 100 where there is none."""
    columns = terminal_columns()
    return _WIDTH if columns is None else min(max(columns, 80), 120)


def name(text: str, numbers: int) -> str:
    """The name of a kernel or operator, in what `numbers` columns leave of a line."""
    return short(text, max(width() - numbers, _SHORTEST_NAME))


def wrapped(text: str, indent: str) -> list[str]:
    """Lines that fit, the following ones indented."""
    return textwrap.wrap(text, width(), subsequent_indent=indent, break_long_words=False) or [text]
