"""Rows as a text that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.row import Row

HEADINGS = ("what", "figure", "", "comparison", "", "ratio", "aim")
RIGHT = {1, 4, 5}


def table(title: str, rows: Sequence[Row]) -> str:
    """Return one benchmark's rows under its name, columns aligned."""
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join([f"== {title}", *(_aligned(line, widths) for line in lines)])


def header(machine: Mapping[str, str]) -> str:
    """Return what a run was made on, one thing a line."""
    return "\n".join(f"{name:8} {value}" for name, value in machine.items())


def _cells(row: Row) -> tuple[str, ...]:
    other = "" if row.other is None else figure(row.other)
    ratio = "" if row.ratio is None else f"{figure(row.ratio)} x"
    aim = "" if row.aim is None else f"{row.aim}: {'met' if row.aim.met_by(row) else 'missed'}"
    return row.name, figure(row.value), row.unit, row.versus, other, ratio, aim


def figure(value: float) -> str:
    """Return a number with three digits that count, or all of a large one."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        cell.rjust(width) if at in RIGHT else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
