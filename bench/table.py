"""Rows as a text that people read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from bench.row import Row

HEADINGS = ("what", "figure", "", "comparison", "", "ratio", "aim")
RIGHT = {1, 4, 5}


def table(title: str, rows: Sequence[Row]) -> str:
    """Return one benchmark's rows under its name, columns aligned."""
    return "\n".join([f"== {title}", *aligned([HEADINGS, *map(_cells, rows)], RIGHT)])


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


def aligned(lines: Sequence[Sequence[str]], right: Collection[int]) -> Iterator[str]:
    """Yield lines of cells with the columns below one another, some of them to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        yield "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
