"""Offsets without a record change no result and no count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.connectors.cutting import recut
from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.model.batch import Batch, Rejected
from ripple.model.schema.columns import records_of
from ripple.model.window import Session, Tumbling
from ripple.testing import Reference
from ripple.testing.check import Follower
from ripple.testing.reference.interpreter import same_row
from tests.engine.machine.ticks import keyed as keyed_by_symbol
from tests.engine.machine.ticks import ticks
from tests.examples import EXAMPLES, SAMPLED

BAD = "it is no record"
SHAPES = [None, Tumbling(50), Session(30)]
shapes = pytest.mark.parametrize("assigner", SHAPES, ids=["running", "tumbling", "session"])


@dataclass(frozen=True)
class Sparse:
    """A log with holes: (offset, event), and None for what the source rejects; where it ends."""

    entries: tuple[tuple[int, dict[str, Any] | None], ...]
    end: int

    def blocks(self, sizes: list[int], fields: Any) -> Iterator[Batch]:
        """Yield batches of so many records in turn; the last one reaches the end."""
        rest = list(self.entries)
        at = 0
        while rest:
            size = sizes[at % len(sizes)]
            at += 1
            taken, rest = rest[:size], rest[size:]
            good = [(offset, event) for offset, event in taken if event is not None]
            rejected = tuple(Rejected(at, None, BAD, b"") for at, event in taken if event is None)
            next_offset = taken[-1][0] + 1 if rest else self.end
            yield Batch(
                records_of([event for _, event in good], fields),
                next_offset,
                rejected,
                np.array([offset for offset, _ in good], np.int64),
            )


@st.composite
def sparse_logs(draw: st.DrawFn) -> Sparse:
    events = draw(ticks(max_size=36))
    gaps = st.sampled_from([0, 0, 0, 1, 2, 9, 31])
    entries, offset = [], 0
    for event in events:
        offset += draw(gaps)
        is_bad = draw(st.sampled_from([False] * 7 + [True]))
        entries.append((offset, None if is_bad else event))
        offset += 1
    return Sparse(tuple(entries), offset + draw(gaps))


def plan_of(assigner: Any) -> Any:
    first = keyed_by_symbol(assigner).fold(
        "f",
        n=ra.count(),
        total=ra.sum("price"),
        opened=ra.first("venue"),
        closed=ra.last("size"),
        best=ra.top_k("price", 2),
    )
    second = first.partition("all", key="n").fold("g", total=ra.sum("total"), rows=ra.count())
    return second.sink("rows", of="f").sink("groups", of="g").plan()


def expected(plan: Any, log: Sparse) -> Reference:
    reference = Reference(plan)
    for offset, event in log.entries:
        reference.skip(offset)
        if event is None:
            reference.skip(offset + 1)
            reference.counts["consumed"] += 1
            reference.counts["dead_lettered"] += 1
        else:
            reference.apply(event)
    reference.skip(log.end)
    return reference


@shapes
@settings(max_examples=9 * EXAMPLES // SAMPLED)
@given(
    log=sparse_logs(),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    batch_rows=st.sampled_from([None, 1, 4, 10, 1000]),
    restarts=st.sets(st.integers(0, 12), max_size=3),
)
def test_engine_with_holes_equals_the_reference(
    assigner: Any, log: Sparse, sizes: list[int], batch_rows: int | None, restarts: set[int]
) -> None:
    plan = plan_of(assigner)
    engine, follower = Engine(plan), Follower(plan)
    refused: list[tuple[int, str]] = []
    for number, batch in enumerate(recut(log.blocks(sizes, plan.source.fields), batch_rows)):
        failed = engine.apply(
            "ticks", batch.records, batch.next_offset, batch.offsets(), len(batch.rejected)
        )
        refused += [(int(batch.offsets()[bad.row]), bad.step) for bad in failed]
        assert engine.cut == {"ticks": batch.next_offset}
        follower.follow(engine.stabilize())
        engine.check_invariants()
        if number in restarts:
            engine = Engine.restore(plan, engine.snapshot())
    reference = expected(plan, log)
    assert engine.cut == (reference.cut if log.entries else {"ticks": 0})
    assert engine.counters.as_dict() == reference.counts
    counts = reference.counts
    assert len(log.entries) == counts["consumed"]
    assert sorted(refused) == [(offset, step) for _, offset, step, _ in reference.dead_letters]
    for name, table in reference.tables().items():
        found = follower.tables[name]
        assert set(found) == set(table)
        assert all(same_row(found[key], row) for key, row in table.items())


@settings(max_examples=72 * EXAMPLES // SAMPLED)
@given(
    log=sparse_logs(),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    others=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    batch_rows=st.sampled_from([1, 4, 10, 1000]),
    data=st.data(),
)
def test_batches_end_on_the_grid_wherever_reading_begins(
    log: Sparse, sizes: list[int], others: list[int], batch_rows: int, data: st.DataObject
) -> None:
    fields = plan_of(None).source.fields
    batches = list(recut(log.blocks(sizes, fields), batch_rows))
    cuts = [batch.next_offset for batch in batches]
    assert cuts == sorted(set(cuts))
    assert all(cut % batch_rows == 0 for cut in cuts[:-1])
    assert cuts[-1:] == [log.end] * bool(log.entries)
    for before, batch in zip([0, *cuts], batches, strict=False):
        at = [*batch.offsets().tolist(), *(bad.offset for bad in batch.rejected)]
        assert all(before <= offset < batch.next_offset for offset in at)
        assert batch.first_offset == min(at, default=batch.next_offset)
        assert batch.span == len(at)
    listed = [offset for batch in batches for offset in batch.offsets().tolist()]
    assert listed == [offset for offset, event in log.entries if event is not None]
    start = data.draw(st.sampled_from([0, *cuts]))
    again = list(recut(log.blocks(others, fields), batch_rows, start))
    assert [batch.next_offset for batch in again] == [cut for cut in cuts if cut > start]
    assert sum(batch.span for batch in again) == sum(o >= start for o, _ in log.entries)


def test_hole_that_a_batch_is_divided_in_belongs_to_its_first_part() -> None:
    records = pa.record_batch({"n": [0, 1, 8]})
    batch = Batch(records, 12, (Rejected(9, None, BAD, b""),), np.array([0, 1, 8]))
    for at in range(2, 9):
        head, tail = batch.split_at(at)
        assert (head.first_offset, head.next_offset, head.span) == (0, at, 2)
        assert (tail.first_offset, tail.next_offset, tail.span) == (8, 12, 2)
    head, tail = batch.split_at(10)
    assert (head.span, tail.span, tail.first_offset, tail.next_offset) == (4, 0, 12, 12)


def test_offsets_that_are_no_rows_are_rejected_records_or_holes() -> None:
    plan = plan_of(None)
    rows = records_of(
        [{"symbol": "A", "price": 1.0, "size": 1, "venue": None, "timestamp_ns": 1}] * 2,
        plan.source.fields,
    )
    at = np.array([3, 7])
    for rejected, consumed in ((None, 10), (8, 10), (1, 3), (0, 2)):
        engine = Engine(plan)
        engine.apply("ticks", rows, 10, at, rejected)
        assert engine.counters.consumed == consumed
        assert engine.counters.dead_lettered == consumed - 2
    engine = Engine(plan)
    for wrong in (-1, 9):
        with pytest.raises(InputError, match="of the 8 offsets up to 10 that are no rows"):
            engine.apply("ticks", rows, 10, at, wrong)
        assert engine.cut == {"ticks": 0}
    engine.apply("ticks", rows.slice(0, 0), 10, at[:0], 0)
    assert (engine.cut, engine.counters.consumed) == ({"ticks": 10}, 0)
