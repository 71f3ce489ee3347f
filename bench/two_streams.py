"""Runs of a pipeline over two streams, read by turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.model.pipeline.plan import Plan

RIGHTS = 5  # rows of the right stream for each of the left


def joined(
    plan: Plan, batches: Sequence[tuple[str, pa.RecordBatch, int]], fields: list[str]
) -> pa.Table:
    """Return fields of the rows of output ``out``, taken after each of the batches of ``turns``."""
    engine, parts = Engine(plan), []
    for name, batch, offset in batches:
        engine.apply(name, batch, offset)
        parts.append(engine.stabilize().outputs["out"])
    engine.close()
    parts.append(engine.stabilize().outputs["out"])
    return pa.Table.from_batches([one for one in parts if one.num_rows]).select(fields)


def turns(sides: Mapping[str, pa.Table], size: int) -> Iterator[tuple[str, pa.RecordBatch, int]]:
    """Yield batches with their source and next offset, RIGHTS of the right for one of the left."""
    (left, lefts), (right, rights) = sides.items()
    for at in range(0, lefts.num_rows, size):
        turn = ((left, lefts, at, size), (right, rights, at * RIGHTS, size * RIGHTS))
        for name, rows, first, count in turn:
            offset = first
            for batch in rows.slice(first, count).to_batches(max_chunksize=size):
                offset += batch.num_rows
                yield name, batch, offset
