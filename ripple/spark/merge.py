"""The merge of inputs by event time: one after the other, the lowest watermark first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.pipeline.input_names import source_of
from ripple.model.window import watermark
from ripple.spark.options import BATCH_ROWS
from ripple.task.next_source import Reading, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.engine.machine import Engine
    from ripple.model.batch import Batch, Marker
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.shares import Share


def entries_in_time(
    plan: Plan,
    shares: Sequence[Share],
    engine: Engine,
    batch_rows: int = BATCH_ROWS,
    *,
    until: Mapping[str, int] | None = None,
    closes: bool = False,
) -> Iterator[tuple[str, Batch | Marker]]:
    """Yield entries of inputs from an engine's cut on: next is the input with the lowest watermark.

    The caller applies each to the engine before it asks for the next. until: the cut to end at, by
    default the ends of the shares. closes: whether an input that has ended holds no window open
    any longer. Raises InputError, as ``Share.entries`` does.
    """
    is_timed = [source_of(plan, share.name).time_field is not None for share in shares]
    cut = engine.cut
    left = {
        share.name: share.entries(
            plan,
            batch_rows,
            since=cut[share.name],
            until=None if until is None else until[share.name],
        )
        for share in shares
    }
    names = [share.name for share in shares]
    while left:
        name = _next(names, is_timed, engine, left, batch_rows)
        entry = next(left[name], None)
        if entry is not None:
            yield name, entry
            continue
        del left[name]
        if closes and left:
            engine.advance(name, watermark.END, engine.cut[name])


def _next(
    names: Sequence[str],
    is_timed: Sequence[bool],
    engine: Engine,
    left: Mapping[str, object],
    batch_rows: int,
) -> str:
    """Return the input to read next, of the remaining ones."""
    if len(left) == 1:
        return next(iter(left))
    cut, marks_ns = engine.cut, engine.watermarks_ns
    readings = [
        Reading(rank, timed, marks_ns[name], cut[name] // batch_rows)
        for rank, (name, timed) in enumerate(zip(names, is_timed, strict=True))
    ]
    return next(names[rank] for rank in in_order(readings) if names[rank] in left)
