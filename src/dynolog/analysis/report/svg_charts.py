"""Charts as SVG inside a page: bars of parts, and bars in groups. Colours come from the page's classes, so that they follow its theme."""

from collections.abc import Callable, Sequence
from html import escape

import msgspec

_LABEL, _BAR, _GAP, _WIDTH, _RIGHT = 78, 20, 8, 900, 70
_AXIS = 22
_PLOT_HEIGHT = 180


class Part(msgspec.Struct, frozen=True):
    """A piece of a bar: its class (colour), its length, and what is said when a pointer rests on it."""

    css: str
    value: float
    title: str


def stacked_bars(bars: Sequence[tuple[str, Sequence[Part]]], total: Callable[[float], str]) -> str:
    """A horizontal bar for each label, the longest fills the width; `total` spells what its parts are together."""
    longest = max((sum(part.value for part in parts) for _, parts in bars), default=0)
    scale = (_WIDTH - _LABEL - _RIGHT) / longest if longest > 0 else 0.0
    height = len(bars) * (_BAR + _GAP) + _GAP
    shapes = []
    for row, (label, parts) in enumerate(bars):
        y, x = _GAP + row * (_BAR + _GAP), float(_LABEL)
        shapes.append(_text(_LABEL - 8, y + _BAR - 6, label, "end"))
        for part in parts:
            width = part.value * scale
            if width > 0:
                shapes.append(_rect(x, y, width, _BAR, part))
                x += width
        shapes.append(_text(x + 6, y + _BAR - 6, total(sum(part.value for part in parts)), "start"))
    return _svg(height, shapes)


def grouped_bars(groups: Sequence[tuple[str, Sequence[Part]]], unit: str) -> str:
    """Vertical bars side by side in groups, with an axis from 0 to the highest."""
    highest = max((part.value for _, parts in groups for part in parts), default=0.0)
    if highest <= 0:
        return ""
    shapes = []
    for fraction in (0.0, 0.5, 1.0):
        y = _GAP + _PLOT_HEIGHT * (1 - fraction)
        shapes.append(f'<line class="grid" x1="{_LABEL}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shapes.append(_text(_LABEL - 8, y + 4, f"{highest * fraction:,.3g} {unit}", "end"))
    pitch = (_WIDTH - _LABEL - _RIGHT) / len(groups)
    every = max(1, round(40 / pitch))
    for place, (label, parts) in enumerate(groups):
        left = _LABEL + place * pitch
        width = pitch * 0.8 / max(len(parts), 1)
        for i, part in enumerate(parts):
            height = _PLOT_HEIGHT * part.value / highest
            if height > 0:
                shapes.append(
                    _rect(left + pitch * 0.1 + i * width, _GAP + _PLOT_HEIGHT - height, width * 0.94, height, part)
                )
        if place % every == 0:
            shapes.append(_text(left + pitch / 2, _GAP + _PLOT_HEIGHT + 16, label, "middle"))
    return _svg(_PLOT_HEIGHT + _GAP + _AXIS, shapes)


def _svg(height: float, shapes: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">{"".join(shapes)}</svg>'


def _rect(x: float, y: float, width: float, height: float, part: Part) -> str:
    return (
        f'<rect class="{part.css}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}">'
        f"<title>{escape(part.title)}</title></rect>"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
