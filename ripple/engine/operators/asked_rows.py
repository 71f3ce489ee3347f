"""The rows of a stream that wait for their answers, in the order of each input."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET, REASON
from ripple.engine.operators.answer_rows import answer_schema
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import PlacedRows
from ripple.engine.snapshots.held_saving import Dumped
from ripple.engine.snapshots.internal import internal
from ripple.model.keys.space import key_space
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.pipeline.waiting_nodes import Ask

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

WATERMARK = internal("watermark_ns")  # of the row's input before its record


class _Part:
    """Rows of one batch that wait, by place, and the answers to them.

    Invariant: ``found`` is per row the number of its answer among all of ``answers``, -1 while it
    has none.
    """

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self.places: Ints = np.asarray(rows.column(PLACE))
        self.found: Ints = np.full(rows.num_rows, -1)
        self.answers: list[pa.RecordBatch] = []
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        answers: int = sum(one.nbytes for one in self.answers)
        return int(self.rows.nbytes) + int(self.found.nbytes) + answers

    def answer(self, places: Ints, answers: pa.RecordBatch) -> None:
        """Take the first answer to each of the rows here; places: rising, also of other rows."""
        at = np.searchsorted(self.places, places)
        at[at == len(self.places)] = 0
        is_new = (self.places[at] == places) & (self.found[at] < 0)
        if not is_new.any():
            return
        chosen = answers.take(pa.array(np.flatnonzero(is_new)))
        self.found[at[is_new]] = np.arange(self._count, self._count + chosen.num_rows)
        self._count += chosen.num_rows
        # A batch of one answer weighs forty times the answer.
        while self.answers and self.answers[-1].num_rows <= 2 * chosen.num_rows:
            chosen = pa.concat_batches([self.answers.pop(), chosen])
        self.answers.append(chosen)

    def answered(self) -> int:
        """Return how many rows, the first ones, have an answer."""
        open_ = np.flatnonzero(self.found < 0)
        return int(open_[0]) if len(open_) else len(self.found)

    def rest(self, at: int) -> _Part:
        """Return the part without the rows before ``at``, and without the answers to them."""
        left = _Part(self.rows.slice(at))
        answered = np.flatnonzero(self.found[at:] >= 0)
        if len(answered):
            left.answer(left.places[answered], self.answers_to(at + answered))
        return left

    def answers_to(self, rows: Ints) -> pa.RecordBatch:
        """Return the answer to each of some rows."""
        return pa.concat_batches(self.answers).take(pa.array(self.found[rows]))


class AskedRows(PlacedRows):
    """Holds rows until they, and those before them in their input, have an answer or a failure.

    Then it is as if their input had been read just so far: they are judged by its watermark before
    their record, which is kept with them, and no order of answers shows.
    """

    def __init__(self, node: Ask, inputs: Mapping[str, Mark], by_input: ByInput) -> None:
        """Make an empty node.

        inputs: of its rows. by_input: finds the inputs of rows by their places.
        """
        self.node = node
        self._inputs = inputs
        self._by_input = by_input
        self._queues: dict[str, deque[_Part]] = {name: deque() for name in inputs}
        self._told: dict[str, int] = dict.fromkeys(inputs, -1)
        """Per input the place of the last row that ``unanswered`` has returned."""
        self.lost = UncomputableRows(key_space(()))
        """Rows without an answer, and rows refused or too late behind this node."""
        self.given = 0
        self._taken: Rows | None = None
        self._befores_ns: Ints = np.empty(0, np.int64)
        own = [pa.field(name, pa.int64()) for name in (TIME, PLACE, WATERMARK)]
        self._schema = pa.schema([*arrow_fields(node.fields_in), *own])
        self._answers = answer_schema(node)

    @property
    def watermark_ns(self) -> int:
        """No row on time follows below: as if inputs had been read up to their first held rows."""
        return min(map(self._mark_of, self._inputs))

    def _mark_of(self, name: str) -> int:
        queue = self._queues[name]
        if not queue:
            return self._inputs[name].watermark_ns
        before_ns: int = queue[0].rows.column(WATERMARK)[0].as_py()
        return before_ns

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._parts())

    @property
    def count(self) -> int:
        """The rows held."""
        return sum(len(part.found) for part in self._parts())

    def _parts(self) -> Iterator[_Part]:
        return (part for queue in self._queues.values() for part in queue)

    def hold(self, name: str, rows: Rows, befores_ns: Ints) -> None:
        """Hold rows of one batch of an input.

        befores_ns: per record of the batch, the watermark of its input before it.
        """
        if not rows.count:
            return
        assert rows.offsets is not None
        times = np.zeros(rows.count, np.int64)
        if rows.times_ns is not None:
            times = np.asarray(rows.times_ns, np.int64)
        own = map(pa.array, (times, rows.offsets, befores_ns[rows.origins]))
        of = [arrow_column(rows.columns[field.name], field.type) for field in self._fields]
        self._queues[name].append(
            _Part(pa.RecordBatch.from_arrays([*of, *own], self._schema.names))
        )

    @property
    def _fields(self) -> Sequence[pa.Field]:
        return list(self._schema)[:-3]

    # --- questions and answers ---

    def unanswered(self) -> pa.RecordBatch | None:
        """Return the rows without an answer that came since the last call, with identities."""
        found = [
            rows
            for name, queue in self._queues.items()
            for part in queue
            if (rows := self._untold(name, part)) is not None
        ]
        return pa.concat_batches(found) if found else None

    def ask_anew(self) -> None:
        """Let ``unanswered`` return all rows without an answer again."""
        self._told = dict.fromkeys(self._inputs, -1)

    def _untold(self, name: str, part: _Part) -> pa.RecordBatch | None:
        new = np.flatnonzero((part.found < 0) & (part.places > self._told[name]))
        if not len(new):
            return None
        self._told[name] = int(part.places[-1])
        ((_, _, offsets, indexes),) = self._by_input(part.places[new])
        rows = part.rows.take(pa.array(new))
        own = {INPUT: pa.array([name] * len(new)), OFFSET: offsets, INDEX: indexes}
        of = {field.name: rows.column(field.name) for field in self._fields}
        return pa.RecordBatch.from_pydict({**own, **of})

    def answer(self, name: str, places: Ints, answers: pa.RecordBatch) -> None:
        """Take answers to rows of an input; the first one counts, and those to no row held pass."""
        places, first = np.unique(places, return_index=True)
        for part in self._queues[name]:
            start, end = np.searchsorted(places, (part.places[0], part.places[-1] + 1))
            if start < end:
                chosen = answers.take(pa.array(first[start:end]))
                part.answer(places[start:end], chosen)

    # --- rows that follow ---

    def take(self) -> Rows | None:
        """Return the next rows with their answers, of one input and in its order."""
        for queue in self._queues.values():
            while queue and (count := queue[0].answered()):
                part = queue.popleft()
                if count < len(part.found):
                    queue.appendleft(part.rest(count))
                rows = self._with_answers(part, np.arange(count))
                if rows is not None:
                    return rows
        return None

    def _with_answers(self, part: _Part, at: Ints) -> Rows | None:
        answers = part.answers_to(at)
        reasons = answers.column(REASON)
        failed = np.flatnonzero(np.asarray(reasons.is_valid()))
        self._lose(part.places[at[failed]], reasons.take(pa.array(failed)).to_pylist())
        kept = np.flatnonzero(np.asarray(reasons.is_null()))
        if not len(kept):
            return None
        held, answers = part.rows.take(pa.array(at[kept])), answers.take(pa.array(kept))
        columns = {field.name: held.column(field.name) for field in self._fields}
        columns |= {one.name: answers.column(one.name) for one in self.node.schema.fields}
        rows = Rows(Columns(columns), len(kept), np.array(held.column(PLACE)))
        rows.times_ns = np.array(held.column(TIME))
        self._befores_ns = np.array(held.column(WATERMARK))
        self._taken = rows.branch()
        self.given += len(kept)
        return rows

    def too_late(self, latenesses_ns: Iterable[int]) -> dict[int, Mask | None]:
        """Return which of the rows taken last are later than each of these latenesses."""
        assert self._taken is not None
        times = np.asarray(self._taken.times_ns)
        is_late = times < self._befores_ns
        if not is_late.any():
            return dict.fromkeys(latenesses_ns)
        # Further apart than int64 reaches.
        behind = self._befores_ns.view(np.uint64) - times.view(np.uint64)
        return {one: is_late & (behind > np.uint64(one)) for one in latenesses_ns}

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""
        taken, bad = self._taken, list(refused)
        assert taken is not None
        assert taken.offsets is not None
        places = taken.offsets[[one.row for one in bad]]
        self._count_lost(places, [Failure.of(one.step, one.reason) for one in bad])

    def lose_late(self, rows: Ints) -> None:
        """Count some of the rows taken last as too late for all behind."""
        assert self._taken is not None
        assert self._taken.offsets is not None
        if len(rows):
            why = "the record came too late for all that takes its row"
            self._lose(self._taken.offsets[rows], [why] * len(rows))

    def _lose(self, places: Ints, reasons: Sequence[str]) -> None:
        self._count_lost(places, [Failure.of(self.node.name, reason) for reason in reasons])

    def _count_lost(self, places: Ints, failures: Sequence[Failure]) -> None:
        for name, at, offsets, indexes in self._by_input(places):
            keys = zip(at.tolist(), offsets.tolist(), indexes.tolist(), strict=True)
            self.lost.lose(
                UncomputableRow((name, offset, index), *failures[one])
                for one, offset, index in keys
            )

    # --- snapshots ---

    def savings(self) -> list[Dumped]:
        """Return the tables of ``dump``."""
        return [Dumped(table) for table in self.dump()]

    def dump(self) -> tuple[pa.Table, pa.Table]:
        """Return the rows held, and their answers so far by place."""
        parts = list(self._parts())
        answers = [self._dumped(part) for part in parts]
        return (
            pa.Table.from_batches([part.rows for part in parts], self._schema),
            pa.Table.from_batches(answers, self._dump_schema),
        )

    @property
    def _dump_schema(self) -> pa.Schema:
        return pa.schema([pa.field(PLACE, pa.int64()), *list(self._answers)[3:]])

    def _dumped(self, part: _Part) -> pa.RecordBatch:
        has = np.flatnonzero(part.found >= 0)
        if not len(has):
            return pa.RecordBatch.from_pylist([], self._dump_schema)
        columns = part.answers_to(has).columns[3:]
        return pa.RecordBatch.from_arrays(
            [pa.array(part.places[has]), *columns], schema=self._dump_schema
        )

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state; all rows without an answer are unanswered again."""
        held, answers = (table.combine_chunks() for table in tables)
        places = np.asarray(held.column(PLACE).to_numpy())
        for name, at, _, _ in self._by_input(places) if len(places) else ():
            (rows,) = held.take(pa.array(at)).combine_chunks().to_batches()
            self._queues[name].append(_Part(rows))
        places = np.asarray(answers.column(PLACE).to_numpy())
        for name, at, _, _ in self._by_input(places) if len(places) else ():
            own = [pa.nulls(len(at), kind) for kind in self._answers.types[:3]]
            (rows,) = answers.take(pa.array(at)).combine_chunks().to_batches()
            of = pa.RecordBatch.from_arrays([*own, *rows.columns[1:]], schema=self._answers)
            self.answer(name, places[at], of)


def watermarks_before(rows: Rows, count: int, before_ns: int, out_of_order_ns: int) -> Ints:
    """Return per record of a batch the watermark of its input before it: int64[count].

    rows: of the records that move it; other records of the batch have none.
    """
    marks = np.full(count + 1, watermark.NONE, np.int64)
    marks[0] = before_ns
    if rows.times_ns is not None and rows.count:
        marks[rows.origins + 1] = np.asarray(rows.times_ns, np.int64) - out_of_order_ns
        marks[0] = before_ns
    marks_before: Ints = np.maximum.accumulate(marks)[:count]
    return marks_before
