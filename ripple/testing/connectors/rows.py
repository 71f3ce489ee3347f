"""The records and changes with which connectors are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.contract import Commit
from ripple.model.aggregate import last
from ripple.model.pipeline.builder import Pipeline
from ripple.model.records import Timestamp, field, record

if TYPE_CHECKING:
    from collections.abc import Sequence

BAD_EVERY = 17  # a price that the record's checks refuse
NAMES = 7
CUT_OFFSETS = 10
ROWS_OF_CUTS = (3, 0, 1, 40, 2, 0, 0, 5)
"""How many changes each of the cuts has that sinks are written."""
CUTS = len(ROWS_OF_CUTS)


@record(version=1)
class Tick:
    """The record that sources are tried with; a price of 0 or less makes it a bad one."""

    number: int
    name: str = field(min_length=1)
    price: float = field(gt=0)
    size: int | None
    at_ns: Timestamp


PIPELINE = (
    Pipeline("ticks")
    .source("ticks", Tick)
    .partition("by-name", key="name")
    .fold("last", number=last("number"), price=last("price"))
    .sink("out")
)
PLAN = PIPELINE.plan()
OUTPUT = PLAN.outputs[0]


def tick(number: int, text: str = "") -> dict[str, Any]:
    """Return the record of a number; text: the prefix of its name."""
    return {
        "number": number,
        "name": f"{text}N{number % NAMES}",
        "price": -1.0 if is_bad(number) else 0.25 * (number % 11 + 1),
        "size": None if number % 3 == 0 else 100 * number,
        "at_ns": 1_709_000_000_000_000_000 + number,
    }


def is_bad(number: int) -> bool:
    """Whether the record of a number breaks a check."""
    return number % BAD_EVERY == BAD_EVERY - 3


def ticks(first: int, end: int, text: str = "") -> list[dict[str, Any]]:
    """Return the records of numbers from ``first`` to before ``end``."""
    return [tick(number, text) for number in range(first, end)]


def changes(cut: int) -> pa.RecordBatch:
    """Return the changes of a cut: each name once, and no row is removed."""
    return _changes([(f"S{row}", 100 * cut + row) for row in range(ROWS_OF_CUTS[cut])])


def other_changes(cut: int) -> pa.RecordBatch:
    """Return as many changes of the same cut, by an owner with other results."""
    return _changes([(f"S{row}", -1 - row) for row in range(ROWS_OF_CUTS[cut])])


def _changes(rows: Sequence[tuple[str, int]]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "name": pa.array([name for name, _ in rows], pa.string()),
            "op": pa.array([0] * len(rows), pa.int8()),
            "number": pa.array([number for _, number in rows], pa.int64()),
            "price": pa.array([number / 4 for _, number in rows], pa.float64()),
        }
    )


def reached(cut: int) -> Commit:
    """Return the position that the changes of a cut reach."""
    return Commit({"ticks": CUT_OFFSETS * (cut + 1)}, f"{cut:016x}")


def cut_after(commit: Commit | None) -> int:
    """Return the number of the cut that comes after a commit."""
    return 0 if commit is None else commit.cut["ticks"] // CUT_OFFSETS


def newest(cuts: int) -> dict[str, int]:
    """Return the newest number of each name after so many cuts."""
    rows = [row for cut in range(cuts) for row in changes(cut).to_pylist()]
    return {row["name"]: row["number"] for row in rows}
