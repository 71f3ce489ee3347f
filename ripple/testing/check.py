"""A pipeline held to its reference, at every batch size that you name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ripple.core.arguments import need_whole, shown
from ripple.core.errors import InputError
from ripple.core.row_ops import OP
from ripple.engine.machine import OP_REMOVE, Changes, Engine
from ripple.engine.operators.answer_rows import Identity, Outcome, answer_rows
from ripple.engine.operators.uncomputable import ROWS_NAMED_MAX, nulls_first
from ripple.model.batch import Answers, Batch
from ripple.model.batch import Marker as BatchMarker
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.input_names import answers_of, is_answers, source_of
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.columns import records_of
from ripple.model.window import watermark
from ripple.task.drive import Drive
from ripple.testing.reference.graph import GraphReference
from ripple.testing.reference.interpreter import Reference, Table, same_row
from ripple.testing.reference.steps import Row
from ripple.testing.reference.windows import Key
from ripple.testing.written import read

BATCH_SIZES = (1, 7, 1000)
NO_EVENTS = "there are no events, and nothing would be compared: an iterator can be read only once"


@dataclass(frozen=True)
class Marker:
    """A promise in an input's log: no event below ``watermark_ns`` follows in it."""

    source: str
    watermark_ns: int


@dataclass(frozen=True)
class Answered:
    """An answer to a waiting row of an ask, or the reason for its absence.

    ask: its name. source, offset, index: the row's input, its record there, its index among the
    rows of that record. answer: the fields of ``into``, None with a ``reason``.
    """

    ask: str
    source: str
    offset: int
    answer: Mapping[str, Any] | None
    reason: str = ""
    index: int = 0


Happening: TypeAlias = pa.RecordBatch | pa.Table | Mapping[str, Any] | tuple[str, Any] | Marker


class Divergence(AssertionError):  # noqa: N818  # a finding, not an error
    """Engine and reference differ.

    event: how many events and markers had been consumed. what: the output, or another thing that
    differs. key: of the row, field: within it, or None where it is not about one. engine,
    reference: the value in each.
    """

    def __init__(
        self,
        event: int,
        batch_size: int,
        what: str,
        key: Key | None = None,
        field: str | None = None,
        *,
        engine: Any,
        reference: Any,
    ) -> None:
        place = "" if key is None else f", key {key!r}" + (f", field {field!r}" if field else "")
        super().__init__(
            f"after {event} events in batches of {batch_size}: {what}{place}: "
            f"the engine has {engine!r}, the reference {reference!r}"
        )
        self.event = event
        self.batch_size = batch_size
        self.what = what
        self.key = key
        self.field = field
        self.engine = engine
        self.reference = reference


def check_pipeline(
    pipeline: Pipeline | Plan,
    events: Iterable[Happening | Answered],
    batch_sizes: Sequence[int] = BATCH_SIZES,
    *,
    inputs: Sequence[str] | None = None,
    restarts: Iterable[int] = (),
) -> None:
    """Compare the engine with the reference; raise :class:`Divergence` at the first difference.

    events: dicts by field name, with texts as the source writes them or with values; record
    batches, tables, :class:`Marker`, :class:`Answered`; and
    (input, any of these) where there are several ``inputs``, or sources, consumed in the order
    given. inputs: of several sources, each is called as its source, or SOURCE/PARTITION.
    batch_sizes: one engine for each, fed in batches of so many events, all compared with the
    reference, which takes one event at a time. restarts: how many events after which every engine
    is restored from its snapshot, 0 for before the first. Compared are tables, counters, refused
    events, the rows that cannot be computed, watermarks, digests, and that changes lead from each
    table to the next. The reference is slow: thousands of events, not millions. Raises InputError
    where nothing would be compared: without batch sizes, where an iterator had been read before, or
    for a restart after the last event.

    >>> check_pipeline(pipeline, [
    ...     {"symbol": "A", "price": 10.0, "size": 3, "timestamp_ns": 5},
    ...     {"symbol": "A", "price": 11.0, "size": 1, "timestamp_ns": 2},
    ... ])
    """
    plan = pipeline.plan() if isinstance(pipeline, Pipeline) else pipeline
    _check_sizes(batch_sizes)
    points = {need_whole("check_pipeline: a restart", one, 0, InputError) for one in restarts}
    reference = Reference(plan, inputs)
    names = tuple(reference.cut)
    lanes = [Lane(plan, names, size) for size in batch_sizes]
    for lane in lanes if 0 in points else ():
        lane.restart()
    alone = names[0] if len(plan.sources) == 1 else None
    for source, happening in read(plan, _in_turn(events, alone)):
        if isinstance(happening, Marker):
            reference.advance(source, happening.watermark_ns)
        elif isinstance(happening, Answered):
            assert isinstance(reference, GraphReference), "a plan with an ask is no chain"
            at = (source, happening.offset, happening.index)
            answer = None if happening.answer is None else dict(happening.answer)
            reference.answer(happening.ask, at, answer, happening.reason)
        else:
            _apply(reference, happening, source)
        for lane in lanes:
            lane.take(source, happening)
            restart = lane.taken in points
            if lane.since >= lane.size or restart:
                lane.compare(reference)
            if restart:
                lane.restart()
    _check_happened(lanes[0].taken, events, points)
    for lane in lanes:
        lane.compare(reference)
    reference.close()
    for lane in lanes:
        lane.compare_after_close(reference)
    _compare_digests(lanes)


def rows_by_source(plan: Plan, events: Iterable[Happening | Answered]) -> dict[str, list[Any]]:
    """Return the events of each source, with values for texts, in the order given."""
    found: dict[str, list[Any]] = {source.name: [] for source in plan.sources}
    alone = plan.sources[0].name if len(plan.sources) == 1 else None
    for name, one in read(plan, _in_turn(events, alone)):
        if isinstance(one, Mapping):
            found[source_of(plan, name).name].append(one)
    return found


def _check_sizes(batch_sizes: Sequence[int]) -> None:
    if not batch_sizes:
        raise InputError("check_pipeline: no batch size: nothing would be compared")
    for size in batch_sizes:
        need_whole("check_pipeline: a batch size", size, 1, InputError)


def _apply(reference: Reference, event: Mapping[str, Any], source: str) -> None:
    try:
        reference.apply(event, source)
    except (TypeError, ValueError, OverflowError):
        fields = source_of(reference.plan, source).fields_taken
        records_of([event], fields)  # which names a value of another type
        raise


def _check_happened(taken: int, events: Iterable[object], restarts: Collection[int]) -> None:
    # A list without any is an example like others: properties draw it.
    if not taken and isinstance(events, Iterator):
        raise InputError(NO_EVENTS)
    last = max(restarts, default=0)
    if 0 < taken < last:
        raise InputError(
            f"check_pipeline: a restart after {last} events, and there are {taken}: it would not "
            "happen"
        )


def _in_turn(
    events: Iterable[Happening | Answered], source: str | None
) -> Iterator[tuple[str, Mapping[str, Any] | Marker | Answered]]:
    """Yield the events, markers and answers, each with its input; see ``one_by_one``."""
    for one in events:
        if isinstance(one, Answered):
            yield one.source, one
        else:
            yield from one_by_one([one], source)


def one_by_one(
    events: Iterable[Happening], source: str | None
) -> Iterator[tuple[str, Mapping[str, Any] | Marker]]:
    """Yield the events and markers, each with its input; ``source`` where none is named.

    Raises InputError for an event without an input where there is no such default.
    """
    for happening in events:
        if isinstance(happening, Marker):
            yield happening.source, happening
        elif isinstance(happening, tuple):
            yield from one_by_one([happening[1]], happening[0])
        elif source is None:
            raise InputError(
                f"an event is {shown(happening)}: with several sources, say of each which input it "
                "is of, as in ('trades', event)"
            )
        elif isinstance(happening, (pa.RecordBatch, pa.Table)):
            yield from ((source, row) for row in happening.to_pylist())
        elif not isinstance(happening, Mapping):
            raise InputError(
                f"an event is {shown(happening)}: events are mappings by field name, record "
                "batches, tables, markers, or (input, one of these)"
            )
        else:
            yield source, happening


def _compare_digests(lanes: Sequence[Lane]) -> None:
    for lane in lanes[1:]:
        if lane.engine.digests != lanes[0].engine.digests:
            raise Divergence(
                lane.taken,
                lane.size,
                f"digests, against those of batches of {lanes[0].size} (not the reference's)",
                engine=lane.engine.digests,
                reference=lanes[0].engine.digests,
            )


class Follower:
    """The table of a reader of the changes, such as a sink, and the rows of streams."""

    def __init__(self, plan: Plan) -> None:
        self.streams: dict[str, list[Row]] = {
            output.name: [] for output in plan.outputs if output.is_stream
        }
        shown = [output for output in plan.outputs if not output.is_stream]
        self.tables: dict[str, Table] = {output.name: {} for output in shown}
        self.identity: dict[str, list[str]] = {}
        for output in shown:
            fold = plan.fold(output.of)
            names = [member.name for member in fold.key]
            self.identity[output.name] = [*names, "window_start_ns"] if fold.window else names

    def follow(self, changes: Changes) -> None:
        """Apply changes; raises AssertionError for a change without effect."""
        for name, batch in changes.outputs.items():
            if name in self.streams:
                self.streams[name] += batch.to_pylist()
                continue
            seen: set[Key] = set()
            for row in batch.to_pylist():
                key = tuple(row[part] for part in self.identity[name])
                assert key not in seen, f"{name}: {key} changed twice between two cuts"
                seen.add(key)
                self._apply(self.tables[name], key, row.pop(OP), row)

    def _apply(self, table: Table, key: Key, op: int, row: Row) -> None:
        if op == OP_REMOVE:
            assert key in table, f"{key} was removed, but it was not there"
            del table[key]
        else:
            assert key not in table or not same_row(table[key], row), f"{key} did not change"
            table[key] = row


def as_text(row: Row) -> str:
    """Return a row to the bit, as ``same_row`` compares it."""
    return repr(sorted(row.items()))


class Lane:
    """One engine, fed in batches of ``size`` events, and the follower of its changes.

    taken: events and markers so far. since: those after the last comparison.
    """

    def __init__(self, plan: Plan, inputs: Sequence[str], size: int) -> None:
        self.size = size
        self._drive = Drive(Engine(plan, inputs=inputs))
        self.follower = Follower(plan)
        self.taken = 0
        self.since = 0
        self._plan = plan
        self._source = next(name for name in inputs if not is_answers(name))
        self._pending: list[Mapping[str, Any]] = []
        self._refused: list[tuple[str, int, str]] = []
        self._restarted = False

    @property
    def engine(self) -> Engine:
        """The engine that is fed now."""
        return self._drive.engine

    def take(self, source: str, happening: Mapping[str, Any] | Marker | Answered) -> None:
        """Queue an event, after feeding other inputs' events; pass on a marker or an answer."""
        self.taken += 1
        self.since += 1
        if source != self._source or not isinstance(happening, Mapping):
            self._feed()
        self._source = source
        if isinstance(happening, Answered):
            self._answer(happening)
        elif isinstance(happening, Marker):
            marker = BatchMarker(happening.watermark_ns, self.engine.cut[source])
            self._drive.apply(source, marker)
        else:
            self._pending.append(happening)

    def _answer(self, one: Answered) -> None:
        (ask,) = (ask for ask in self._plan.asks if ask.name == one.ask)
        row = Identity(one.source, one.offset, one.index)
        rows = answer_rows(ask, [Outcome(row, one.answer, one.reason)])
        log = answers_of(self.engine.partition)
        self._drive.apply(log, Answers(watermark.NONE, self.engine.cut[log] + 1, ask.name, rows))

    def _feed(self) -> None:
        if not self._pending:
            return
        batch = records_of(self._pending, source_of(self._plan, self._source).fields_taken)
        first = self.engine.cut[self._source]
        rejected = self._drive.apply(self._source, Batch(batch, first + len(self._pending)))
        self._refused += [(self._source, bad.offset, bad.step or "") for bad in rejected]
        self._pending = []

    def restart(self) -> None:
        """Replace the engine by one restored from its snapshot."""
        self._drive = Drive(Engine.restore(self._plan, self.engine.snapshot()))
        self._restarted = True

    def compare(self, reference: Reference) -> None:
        """Stabilize and raise :class:`Divergence` where engine, follower and reference differ."""
        self._feed()
        self.since = 0
        self.follower.follow(self._drive.stabilize())
        self.engine.check_invariants()
        refused = [(name, offset, step) for name, offset, step, _ in reference.dead_letters]
        watermark_ns = reference.watermark_ns
        self._expect("the cut", self.engine.cut, reference.cut)
        self._expect("the counters", self.engine.counters.as_dict(), reference.counts)
        by_source = {name: each.as_dict() for name, each in self.engine.counters_by_source.items()}
        self._expect("the counters by source", by_source, reference.counts_by_source)
        self._expect("the refused events", sorted(self._refused), sorted(refused))
        self._expect(
            "the watermark",
            self.engine.watermark_ns,
            watermark.NONE if watermark_ns is None else watermark_ns,
        )
        self._compare_uncomputable(reference.uncomputable())
        for output, table in reference.tables().items():
            self._compare_tables(f"output {output!r}", self.follower.tables[output], table)
            self._compare_memory(output, table)
        for output, inputs in reference.streams().items():
            self._compare_stream(output, inputs)

    def compare_after_close(self, reference: Reference) -> None:
        """Let every window end, as the reference has, and compare."""
        self._feed()
        self.engine.close()
        self.compare(reference)

    def _expect(self, what: str, engine: Any, reference: Any) -> None:
        if engine != reference:
            raise Divergence(self.taken, self.size, what, engine=engine, reference=reference)

    def _compare_tables(self, what: str, engine: Table, reference: Table) -> None:
        for key in sorted({*engine, *reference}):
            one, other = engine.get(key), reference.get(key)
            if one is None or other is None:
                raise Divergence(self.taken, self.size, what, key, engine=one, reference=other)
            if same_row(one, other):
                continue
            for name in sorted({*one, *other}):
                values = {name: one.get(name)}, {name: other.get(name)}
                if not same_row(*values):
                    found = (values[0][name], values[1][name])
                    raise Divergence(
                        self.taken, self.size, what, key, name, engine=found[0], reference=found[1]
                    )

    def _compare_stream(self, output: str, reference: Mapping[str, Sequence[Row]]) -> None:
        """Compare the rows of a stream: in their order, where they are of one input."""
        expected = [list(map(as_text, rows)) for rows in reference.values()]
        found = list(map(as_text, self.follower.streams[output]))
        if len(expected) > 1:  # which of two inputs comes first is not promised
            expected, found = [sorted(one for rows in expected for one in rows)], sorted(found)
        self._expect(f"the rows of output {output!r}", found, expected[0])

    def _compare_uncomputable(self, reference: Mapping[str, Sequence[tuple[Key, str]]]) -> None:
        """Compare how many rows there are, and the named ones: the first by key.

        Final ones are not named any more after a restart.
        """
        seen = self.engine.uncomputable
        counts = {name: one.count for name, one in seen.items()}
        expected = {name: len(rows) for name, rows in reference.items()}
        self._expect("the numbers of rows that cannot be computed", counts, expected)
        for name, rows in reference.items():
            named = {row.key: row.step for row in seen[name].rows}
            first = dict(sorted(rows, key=lambda row: nulls_first(row[0]))[:ROWS_NAMED_MAX])
            if self._restarted:
                first = {key: step for key, step in rows if key in named}
            self._expect(f"the rows of {name!r} that cannot be computed", named, first)

    def _compare_memory(self, output: str, reference: Table) -> None:
        """Compare the rows that the engine still holds; final ones it may have freed."""
        identity = self.follower.identity[output]
        held = {
            tuple(row[part] for part in identity): row
            for row in self.engine.table(output).to_pylist()
        }
        expected = {key: row for key, row in reference.items() if key in held}
        self._compare_tables(f"the rows in memory of output {output!r}", held, expected)
