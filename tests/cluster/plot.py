"""Lines over time as SVG: small charts below each other, each with its own scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN, LEGEND = 760, 150, 50, 190
COLOURS = ("#3566a8", "#c0504d", "#4f8f4f", "#8064a2", "#d08030", "#4bacc6", "#7f7f7f", "#222222")


class Series(NamedTuple):
    """A named line."""

    name: str
    points: Sequence[tuple[float, float]]


def svg(charts: Mapping[str, Sequence[Series]], unit: str) -> str:
    """Return a drawing of charts by title. unit: of the horizontal axis."""
    parts = [
        _chart(title, series, at * (HEIGHT + MARGIN), unit)
        for at, (title, series) in enumerate(charts.items())
    ]
    size = f'width="{WIDTH + LEGEND + MARGIN}" height="{len(charts) * (HEIGHT + MARGIN) + 10}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
    )
    return "\n".join([head, *parts, "</svg>\n"])


def _chart(title: str, series: Sequence[Series], top: int, unit: str) -> str:
    right = max((x for one in series for x, _ in one.points), default=1) or 1
    high = max((y for one in series for _, y in one.points), default=1) or 1
    lines = [
        f'<text x="{MARGIN}" y="{top + 20}" font-weight="bold">{escape(title)}</text>',
        f'<text x="4" y="{top + 34}">{high:.3g}</text>',
        f'<text x="4" y="{top + HEIGHT + 28}">0</text>',
        f'<text x="{WIDTH - 20}" y="{top + HEIGHT + 42}">{right:.0f} {escape(unit)}</text>',
        f'<path d="M{MARGIN},{top + 28}V{top + HEIGHT + 28}H{WIDTH}" fill="none" stroke="#999"/>',
    ]
    for at, one in enumerate(series):
        points = " ".join(
            f"{MARGIN + x / right * (WIDTH - MARGIN):.1f},{top + 28 + HEIGHT * (1 - y / high):.1f}"
            for x, y in one.points
        )
        colour = COLOURS[at % len(COLOURS)]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        place = f'x="{WIDTH + 12}" y="{top + 34 + 13 * at}"'
        lines.append(f'<text {place} fill="{colour}">{escape(one.name)}</text>')
    return "\n".join(lines)
