"""The reference of plans with branches or several sources: each record through all its nodes.

A record that any branch refuses has no effect in any. It is very late if it reached at least one
window and each that it reached was over for it, and no sink; see ``docs/design/0001-graph.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count as counting
from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.input_names import answers_of, inputs_by_source, source_of
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, Fold, LastTable, RowTable, TableJoin
from ripple.model.pipeline.plan import inputs_first
from ripple.model.pipeline.waiting_nodes import (
    Ask,
    AsofJoin,
    BookScan,
    Distinct,
    IntervalJoin,
    Scan,
    StepScan,
    sides_of,
)
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import FUTURE_TOLERANCE_DEFAULT
from ripple.testing.reference.held import Asked, Held, counted
from ripple.testing.reference.interpreter import (
    END_NS,
    EventFold,
    Input,
    Reference,
    View,
    folded_view,
    inputs_of,
    typed,
)
from ripple.testing.reference.joins import joined_view
from ripple.testing.reference.marks import Marks
from ripple.testing.reference.row_tables import (
    book_table,
    last_table,
    match_table,
    pair_table,
    scan_table,
    timed_rows,
    timed_table,
)
from ripple.testing.reference.running import divided
from ripple.testing.reference.scans import States, applied, applied_message
from ripple.testing.reference.steps import (
    RefusedRow,
    Row,
    give_time,
    kinds_of,
    refuse_invalid,
    refuse_nulls,
    rows_after,
)
from ripple.testing.reference.stream_joins import added, is_certain, is_pair, matched, right_alone
from ripple.testing.reference.timers import Timers
from ripple.testing.reference.trading import refuse_outside
from ripple.testing.reference.windows import Event, Key, Window

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding


class GraphReference(Reference):
    """One partition of a pipeline with branches or several sources; see Reference.

    counts_by_source: per source, as ``counts``. marks: the watermarks of its streams and folds.
    """

    def __init__(self, plan: Plan, inputs: Sequence[str] | None = None) -> None:
        self._begin(plan, inputs)
        self.counts_by_source = {source.name: dict(self.counts) for source in plan.sources}
        self._event_folds = [EventFold(fold) for fold in plan.event_folds]
        self._roots = {node.of.name: set(plan.roots_of(node.of.name)) for node in plan.computed}
        self._lost: dict[str, dict[Any, RefusedRow]] = {}
        self._lost_rows: dict[str, list[tuple[Key, RefusedRow]]] = {}
        self._passed = 0
        self._held: dict[tuple[str, int], list[Held]] = {
            (node.name, side): [] for node in plan.holding for side, _ in enumerate(sides_of(node))
        }
        """Per side of a node that holds rows all that ever came, and whether they were decided."""
        self._asked: dict[tuple[str, str], list[Asked]] = {
            (ask.name, name): []
            for ask in plan.asks
            for name in self._inputs
            if self._root_of(name) in self._roots[ask.reads]
        }
        """Per ask and input its waiting rows, in the order of the input."""
        self.marks = Marks(plan, self._roots, self._inputs, self._asked)
        self._states: dict[str, States] = {}
        """Per scan the states of its keys."""
        self._timers: dict[str, Timers] = {}
        """Per scan with timers its keys."""
        self._parts: dict[Any, int] = {}
        """Per record, the index of the last of the rows that a scan divided it into."""
        self._answer_offset = 0
        for inputs_of_one in inputs_by_source(plan, self._inputs).values():
            for rank, name in enumerate(inputs_of_one):
                self._inputs[name].rank = rank
        self._streams: dict[str, dict[str, list[Row]]] = {
            output.name: {
                name: []
                for name in (*self._inputs, *(node.name for node in plan.finals))
                if self._root_of(name) in self._comes_to(output.of)
            }
            for output in plan.outputs
            if output.is_stream
        }

    def apply(self, event: Mapping[str, Any], source: str | None = None) -> None:
        """Consume the next event of an input, by default the only one."""
        name = source if source is not None else next(iter(self._inputs))
        given, of = self._input(name), source_of(self.plan, name)
        offset, given.next_offset = given.next_offset, given.next_offset + 1
        before_ns = self._reached()
        before = dict(self.counts)
        self.counts["consumed"] += 1
        arrived: dict[str, list[Event]] = {}
        try:
            arrived = self._through(typed(event, of), of, (name, offset), given)
        except RefusedRow as refused:
            self.counts["dead_lettered"] += 1
            self.dead_letters.append((name, offset, refused.step, refused.reason))
        for what, count in self.counts.items():
            self.counts_by_source[of.name][what] += count - before[what]
        self._step(arrived, before_ns)

    def answer(
        self, ask: str, at: tuple[str, int, int], answer: Row | None, reason: str = ""
    ) -> None:
        """Consume an answer to a row, (input, offset, index), or the reason for its absence."""
        self._answer_offset += 1
        before_ns = self._reached()
        name, offset, index = at
        for one in self._asked[ask, name]:
            if one.held.origin[1:] == (offset, index) and one.answer is None and not one.reason:
                one.answer, one.reason = answer, reason
        self._step({}, before_ns)

    @property
    def cut(self) -> dict[str, int]:
        """Per input, and log of answers, the next offset to read."""
        answers = {answers_of(0): self._answer_offset} if self.plan.asks else {}
        return super().cut | answers

    def _follow(self, node: Ask, arrived: dict[str, list[Event]]) -> None:
        """Pass on the answered rows of an ask, in the order of each input."""
        for (name, _), waiting in self._asked.items():
            while name == node.name and waiting and (waiting[0].answer or waiting[0].reason):
                one = waiting.pop(0)
                try:
                    if one.answer is None:
                        raise RefusedRow(node.name, one.reason)
                    row = replace(one.held, row=one.held.row | one.answer)
                    behind_ns = 0
                    if one.before_ns is not None:
                        behind_ns = max(0, one.before_ns - one.held.time_ns)
                    self._spread(node.name, row, arrived, behind_ns)
                except RefusedRow as refused:
                    self._lost_rows.setdefault(node.name, []).append((one.held.origin, refused))

    def _step(self, arrived: dict[str, list[Event]], before_ns: Mapping[str, int | None]) -> None:
        """Let each fold take its events, then the watermark, and pass its final rows on."""
        self._views = None
        folds = {fold.fold.name: fold for fold in self._event_folds}
        for node, _ in inputs_first(self.plan):
            if isinstance(node, Ask):
                self._follow(node, arrived)
            if isinstance(node, Distinct):
                self._decide(node, arrived)
            if isinstance(node, Scan):
                self._scan(node, arrived)
            if isinstance(node, AsofJoin):
                self._join(node, arrived)
            if isinstance(node, IntervalJoin):
                self._pair(node, arrived)
            if node.name not in folds:
                continue
            fold = folds[node.name]
            events = arrived.get(fold.fold.name, [])
            was_ns = before_ns[fold.fold.name]
            for one in events[:-1]:
                fold.step(one, was_ns, was_ns)
            fold.step(events[-1] if events else None, was_ns, self._reached_by(fold.fold))
            over, fold.over = sorted(fold.over, key=lambda one: (one.end_ns, one.key)), []
            for window in over:
                self._pass_on(fold, window, arrived)

    def _pass_on(self, fold: EventFold, window: Window, arrived: dict[str, list[Event]]) -> None:
        """Let the final row of a window, if there is one, go to the folds and outputs after it."""
        identity = (*window.key, window.start_ns)
        row = fold.view.rows.get(identity)
        self._passed += 1
        place = (len(self.plan.sources), self._passed, 0)
        if row is None:
            return
        for node in self.plan.finals:
            if node.fold == fold.fold.name:
                try:
                    self._spread(
                        node.name, Held((), window.end_ns - 1, place, node.name, row), arrived
                    )
                except RefusedRow as refused:
                    self._lost.setdefault(fold.fold.name, {}).setdefault(identity, refused)

    def _decide(self, node: Distinct, arrived: dict[str, list[Event]]) -> None:
        """Pass on the rows that became final, and that no row of their key precedes closely."""
        mark_ns = self.marks.final(node.name)
        if mark_ns is None:
            return
        rows = self._in_order(node.name, 0)
        for at, row in enumerate(rows):
            if not row.is_due(mark_ns):
                continue
            row.is_decided = True
            close = (
                row.time_ns - other.time_ns <= node.within_ns
                for other in rows[:at]
                if other.key == row.key
            )
            if not any(close):
                self._give(node, row, arrived)

    def _scan(self, node: Scan, arrived: dict[str, list[Event]]) -> None:
        """Apply the rows that became final to the states of their keys, in their order."""
        mark_ns = self.marks.final(node.name)
        is_eager = isinstance(node, StepScan | BookScan) and node.is_eager
        is_last = isinstance(node, StepScan) and node.is_last
        if mark_ns is None or (is_eager and not is_last):
            return
        if isinstance(node, StepScan) and node.timers:
            self._timed(node, mark_ns, arrived, is_eager=is_eager)
        else:
            self._apply(node, mark_ns, arrived, is_eager=is_eager)

    def _apply(
        self, node: Scan, mark_ns: int, arrived: dict[str, list[Event]], *, is_eager: bool
    ) -> None:
        states = self._states.setdefault(node.name, {})
        for row, values in counted(node, self._in_order(node.name, 0)):
            if not row.is_due(mark_ns):
                continue
            row.is_decided = True
            if isinstance(node, BookScan):
                self._message(node, states, row, arrived)
                continue
            result = applied(node, states, row.key, row.time_ns, values)
            if result is None:
                continue
            if isinstance(result, RefusedRow):
                self._lose(node, row, result)
                continue
            if is_eager:
                continue
            parts = divided(node, states[row.key][1], result)
            if parts is None:
                self._give(node, replace(row, row=result), arrived)
                continue
            self._give_parts(node, row, parts, arrived)

    def _timed(
        self, node: StepScan, mark_ns: int, arrived: dict[str, list[Event]], *, is_eager: bool
    ) -> None:
        """Pass on the results of rows that became final, and of timers by the mark.

        Those of a table are lost or not once a row behind them is final, or inputs have ended.
        """
        scan = self._timers.setdefault(node.name, Timers(node))
        each = counted(node, self._in_order(node.name, 0))
        due = [(row, values) for row, values in each if row.is_due(mark_ns)]
        for row, _ in due:
            row.is_decided = True
        open_ns = self.marks.open_final(node.name)
        if not is_eager:
            found = scan.take(due, mark_ns, open_ns)
        else:
            found = scan.before(due, without_ended=True)
            if mark_ns == END_NS:
                found += scan.ended(self.marks.open_reached(node.reads), open_ns)
        for row, result in found:
            if isinstance(result, RefusedRow):
                self._lose(node, row, result)
            elif result is not None and not is_eager:
                self._give(node, replace(row, row=result), arrived)

    def _message(
        self, node: BookScan, states: States, row: Held, arrived: dict[str, list[Event]]
    ) -> None:
        """Apply a final message to the book of its key."""
        lost, rows = applied_message(node, states, row.key, row.time_ns, row.row)
        for one in lost:
            self._lose(node, row, one)
        if node.book.show == "levels":
            self._give_parts(node, row, rows, arrived)
            return
        for made in rows:
            self._give(node, replace(row, row=made), arrived)

    def _give_parts(
        self, node: Scan, row: Held, parts: Sequence[Row], arrived: dict[str, list[Event]]
    ) -> None:
        """Pass on the rows made of one, each with an index in its record."""
        for part in parts:
            record = (node.name, row.name, row.place[:3])
            index = self._parts[record] = self._parts.get(record, -1) + 1
            one = replace(row, row=part, place=(*row.place[:3], index))
            self._give(node, one, arrived)

    def _join(self, node: AsofJoin, arrived: dict[str, list[Event]]) -> None:
        """Pass on each row of the left side that became final, with its match."""
        marks_ns = [self.marks.settled(side.reads, side.lateness_ns) for side in sides_of(node)]
        for row in self._in_order(node.name, 0):
            if row.is_decided or None in marks_ns or not is_certain(node, row.time_ns, marks_ns):
                continue
            row.is_decided = True
            joined = None if node.is_eager else matched(node, row, self._in_order(node.name, 1))
            if joined is not None:
                self._give(node, replace(row, row=joined), arrived)

    def _row_table(self, fold: RowTable) -> View:
        """Return the rows of a scan or join from their reading on."""
        for scan in self.plan.scans:
            if scan.name == fold.input:
                rows = self._in_order(scan.name, 0)
                if isinstance(fold, LastTable):
                    open_ns = self.marks.open_final(scan.name)
                    if isinstance(scan, StepScan) and scan.timers:
                        has_ended = self.marks.reached(scan.reads) == END_NS
                        at = (self.marks.open_reached(scan.reads), open_ns)
                        return timed_table(fold, scan, rows, *at, has_ended=has_ended)
                    return last_table(fold, scan, rows, open_ns)
                if isinstance(scan, BookScan):
                    return book_table(fold, scan, rows)
                if isinstance(scan, StepScan) and scan.timers:
                    has_ended = self.marks.reached(scan.reads) == END_NS
                    reached_ns = self.marks.open_reached(scan.reads)
                    return timed_rows(fold, scan, rows, reached_ns, has_ended=has_ended)
                return scan_table(fold, scan, rows)
        (node,) = (one for one in self.plan.stream_joins if one.name == fold.input)
        left, right = (self._in_order(node.name, side) for side in range(2))
        if isinstance(node, IntervalJoin):
            return pair_table(fold, node, left, right)
        assert isinstance(node, AsofJoin), "no other joins"
        return match_table(fold, node, left, right)

    def _pair(self, node: IntervalJoin, arrived: dict[str, list[Event]]) -> None:
        """Pass on each row of the left side to which no partner can come any more, with them all.

        Where they are shown, so is each row of the right side without a partner, after the rows of
        the left side of its record. Of a record of which there would be too many, none.
        """
        mark_ns = self.marks.final(node.name)
        each = [self._in_order(node.name, side) for side in range(1 + node.shows_right)]
        due = [
            (row.time_ns, row.place[:3], side, row)
            for side, rows in enumerate(each)
            for row in rows
            if mark_ns is not None and row.is_due(mark_ns)
        ]
        made: dict[Any, list[tuple[Held, list[Row]]]] = {}
        for time_ns, record, side, row in sorted(due, key=lambda one: one[:3]):
            row.is_decided = True
            partners = [
                other
                for other in self._in_order(node.name, 1 - side)
                if is_pair(node, *((row, other) if side == 0 else (other, row)))
            ]
            without: list[Row] = [{}] if node.how in ("full", "right" if side else "left") else []
            rows = [one.row for one in partners if side == 0] if partners else without
            one = right_alone(node, row) if side else row
            made.setdefault((time_ns, row.name, record), []).append((one, rows))
        for several in made.values():
            number = counting()
            is_lost = sum(len(rows) for _, rows in several) > FLAT_ROWS_MAX
            for row, rows in several:
                if is_lost:
                    self._lose(node, row, RefusedRow(node.name, "too many rows"))
                    continue
                for other in [] if node.is_eager else rows:
                    joined = added(node, other) | row.row
                    one = replace(row, row=joined, place=(*row.place[:3], next(number)))
                    self._give(node, one, arrived)

    def _in_order(self, name: str, side: int) -> list[Held]:
        return sorted(self._held[name, side], key=lambda one: (one.time_ns, one.place))

    def _give(self, node: Holding, row: Held, arrived: dict[str, list[Event]]) -> None:
        """Pass a held row of a node on to those behind it."""
        try:
            self._spread(node.name, row, arrived)
        except RefusedRow as refused:
            self._lose(node, row, refused)

    def _lose(self, node: Holding, row: Held, why: RefusedRow) -> None:
        """Count a held row of a node as one that cannot be computed."""
        self._lost_rows.setdefault(node.name, []).append(((*row.key, row.time_ns), why))

    def _comes_to(self, name: str) -> set[str]:
        """Return the sources and nodes of final rows whose rows come to a stream."""
        found: set[str] = set()
        for root in self._roots[name]:
            ask = next((node for node in self.plan.asks if node.name == root), None)
            if ask is not None:
                found |= self._comes_to(ask.reads)
                continue
            of = next((node for node in self.plan.holding if node.name == root), None)
            shows_right = isinstance(of, IntervalJoin) and of.shows_right
            for side in () if of is None else sides_of(of)[: 1 + shows_right]:
                found |= self._comes_to(side.reads)
            found |= {root} if of is None else set()
        return found

    def _hold(
        self, branches: Mapping[str, list[Row]], one: Held, behind_ns: int = 0
    ) -> tuple[bool, bool]:
        """Let nodes have the rows that steps made of a record, or of another row.

        Returns whether some were held, and whether some came too late.
        """
        held = late = False
        for node in self.plan.holding:
            for number, side in enumerate(sides_of(node)):
                rows = branches.get(side.reads, [])
                if behind_ns > side.lateness_ns:
                    late = late or bool(rows)
                    continue
                held = held or bool(rows)
                for index, row in enumerate(rows):
                    key = tuple(row[field.name] for field in side.key)
                    at = (*one.place, index)
                    self._held[node.name, number].append(Held(key, one.time_ns, at, one.name, row))
        return held, late

    def _spread(self, root: str, one: Held, arrived: dict[str, Any], behind_ns: int = 0) -> None:
        """Let a row of a stream that begins at ``root`` come to folds and outputs.

        behind_ns: how far its record was behind the watermark. Raises RefusedRow with nothing done,
        also for one too late for all.
        """
        branches = self._branches(root, one.row)
        self._refuse_keys(branches)
        found = {
            fold.fold.name: [
                self._event(fold.fold, each, one.time_ns, (*one.place, index))
                for index, each in enumerate(branches.get(fold.fold.reads, []))
            ]
            for fold in self._event_folds
        }
        was_late = False
        for fold in self._event_folds:
            timing, name = fold.fold.timing, fold.fold.name
            if found[name] and timing is not None and behind_ns > timing.lateness_ns:
                was_late = True
                found[name] = []
            arrived.setdefault(name, []).extend(found[name])
        held, late = self._hold(branches, one, behind_ns)
        self._show(one.name, branches)
        shown = [branches.get(output.of) for output in self.plan.outputs if output.is_stream]
        if (was_late or late) and not held and not any(found.values()) and not any(shown):
            raise RefusedRow(root, "the record came too late for all that takes its row")

    def _refuse_keys(self, branches: Mapping[str, list[Row]]) -> None:
        """Raise RefusedRow for a row without the key of a node of .distinct or .scan."""
        keyed: tuple[Distinct | Scan, ...] = (*self.plan.distincts, *self.plan.scans)
        for node in keyed:
            for row in branches.get(node.reads, []):
                refuse_nulls(row, node.key, node.name)

    def _branches(self, root: str, row: Row) -> dict[str, list[Row]]:
        """Return the rows of a record, or a final row, at each node of a stream that they reach."""
        branches = {root: [row]}
        for step in self.plan.steps:
            if root in self._roots[step.name] and step.name != root:
                branches[step.name] = rows_after(step, branches)
        return branches

    def _show(self, name: str, branches: Mapping[str, list[Row]]) -> None:
        """Add rows that came by an input, or by a node of final rows, to the outputs."""
        for output in self.plan.outputs:
            if output.is_stream and output.of in branches:
                fields = [field.name for field in output.fields]
                rows = branches[output.of]
                self._streams[output.name][name] += [{of: one[of] for of in fields} for one in rows]

    def _root_of(self, name: str) -> str:
        """Return the source of an input; a node of final rows is its own."""
        return source_of(self.plan, name).name if name in self._inputs else name

    def _reached(self) -> dict[str, int | None]:
        """Return the watermark of each fold of events."""
        return {one.fold.name: self._reached_by(one.fold) for one in self._event_folds}

    def _reached_by(self, fold: Fold) -> int | None:
        """Return the watermark of a fold; for keys that end, the end of inputs is no time."""
        marks = self.marks
        return marks.reached(fold.name) if fold.expiry is None else marks.open_reached(fold.name)

    def _through(
        self, row: Row, source: SourceSpec, at: tuple[str, int], given: Input
    ) -> dict[str, list[Event]]:
        """Return the events that a record is for each fold, and show its rows in outputs.

        at: its input and offset. Counts it as applied or very late. Raises RefusedRow with nothing
        else done.
        """
        name, offset = at
        place = (self.plan.sources.index(source), offset, given.rank)
        refuse_invalid(row, source)
        give_time(row, source, given.watermark_ns)
        before_ns = given.watermark_ns
        behind_ns = self._behind(row, source, given)
        branches = self._branches(source.name, row)
        time_ns = 0 if source.time_field is None else row[source.time_field]
        self._refuse_keys(branches)
        arrived: dict[str, list[Event]] = {}
        was_late = False
        for one in self._event_folds:
            fold, rows = one.fold, branches.get(one.fold.reads, [])
            if rows and fold.timing is not None and behind_ns > fold.timing.lateness_ns:
                was_late = True
                continue
            arrived[fold.name] = [
                self._event(fold, each, time_ns, (*place, index)) for index, each in enumerate(rows)
            ]
        self._show(name, branches)
        shown = [branches.get(output.of) for output in self.plan.outputs if output.is_stream]
        held, late = self._hold(branches, Held((), time_ns, place, name, row), behind_ns)
        was_late = was_late or late
        for ask in self.plan.asks:
            waiting = [
                Asked(Held((), time_ns, (*place, index), name, each), before_ns)
                for index, each in enumerate(branches.get(ask.reads, []))
            ]
            held = held or bool(waiting)
            self._asked.get((ask.name, name), []).extend(waiting)
        if was_late and not held and not any(arrived.values()) and not any(shown):
            self.counts["very_late"] += 1
            self.counts["mildly_late"] -= 1
        else:
            self.counts["applied"] += 1
        return arrived

    def _behind(self, row: Row, source: SourceSpec, given: Input) -> int:
        """Return how far a record is behind its input's watermark, and move that past it."""
        if source.time_field is None:
            return 0
        time_ns: int = row[source.time_field]
        watermark_ns = given.move_past(row, source)
        if watermark_ns is None:
            return 0
        folds = [one.fold for one in self._event_folds]
        reached = [fold for fold in folds if source.name in self._roots[fold.name]]
        spans_ns = [fold.future_ns for fold in reached if fold.future_ns is not None]
        future_ns = min(spans_ns, default=duration_ns(FUTURE_TOLERANCE_DEFAULT))
        self.counts["mildly_late"] += time_ns < watermark_ns
        self.counts["future"] += time_ns > watermark_ns + future_ns
        return max(0, watermark_ns - time_ns)

    def _event(self, fold: Fold, row: Row, time_ns: int, order: tuple[int, ...]) -> Event:
        refuse_outside(fold.window, time_ns)
        refuse_nulls(row, fold.key, fold.partition)
        kinds = kinds_of(fold.fields_in)
        for member in fold.aggregates:
            inputs_of(member, row, fold, kinds)
        return Event(tuple(row[field.name] for field in fold.key), time_ns, order, row)

    def advance(self, source: str, watermark_ns: int) -> None:
        """Consume a marker: no event below ``watermark_ns`` follows in that input."""
        given, before_ns = self._input(source), self._reached()
        given.raise_watermark(watermark_ns)
        self._step({}, before_ns)

    def close(self) -> None:
        """Declare all inputs ended, at once."""
        before_ns = self._reached()
        for given in self._inputs.values():
            given.raise_watermark(END_NS)
        self._step({}, before_ns)

    def streams(self) -> dict[str, dict[str, list[Row]]]:
        """Return per output of events, and input, the rows that it received, in their order."""
        return self._streams

    def uncomputable(self) -> dict[str, list[tuple[Key, str]]]:
        """Return the rows that cannot be computed, by their key; see Reference."""
        lost = {
            name: [(key, why.step) for key, why in rows] for name, rows in self._lost_rows.items()
        }
        return super().uncomputable() | lost

    def _computed(self) -> dict[str, View]:
        views = {fold.fold.name: fold.view for fold in self._event_folds}
        unfolded: dict[str, dict[Any, RefusedRow]] = {}
        for fold in self.plan.folds:
            if isinstance(fold, RowTable):
                views[fold.name] = self._row_table(fold)
            elif isinstance(fold, TableJoin):
                views[fold.name] = joined_view(fold, views[fold.input], views[fold.right])
            elif fold.name not in views:
                below = views[fold.input]
                views[fold.name] = folded_view(fold, below)
                unfolded.setdefault(fold.input, {}).update(below.unfolded)
        for name, rows in self._lost.items():
            unfolded.setdefault(name, {}).update(rows)
        for name, rows in unfolded.items():
            views[name].unfolded = rows
        return views
