"""The engine of a plan with branches or several sources: the way of a record to folds and outputs.

The row steps of all branches run before any state changes, so that a record counts everywhere or
nowhere. Everything else, from the counters to the views, is that of the engine of a chain.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.engine.kernels.columns import Columns
from ripple.engine.machine.counters import Counters
from ripple.engine.machine.engine import TAKEN, Engine, known_keys, names_of, reject_beyond
from ripple.engine.machine.fate import Fate
from ripple.engine.machine.inputs import Input
from ripple.engine.machine.port import Port
from ripple.engine.machine.row_origins import RowOrigins
from ripple.engine.machine.way import SPAN, Way
from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET
from ripple.engine.operators.feeds import Feeds
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.stream_rows import StreamRows
from ripple.engine.snapshots.snapshot import (
    REJECTED,
    SnapshotError,
    held_key,
    source_counter,
    uncomputable_counter,
)
from ripple.model.canonical import digest_of
from ripple.model.expression.bound import numbers
from ripple.model.expression.typed import Kind
from ripple.model.pipeline.input_names import inputs_by_source
from ripple.model.pipeline.nodes import LastTable
from ripple.model.pipeline.plan import inputs_first
from ripple.model.pipeline.waiting_nodes import (
    Ask,
    AsofJoin,
    BookScan,
    Distinct,
    IntervalJoin,
    LastScan,
    RunningScan,
    Scan,
    StepScan,
    StreamJoin,
    sides_of,
    tables_of,
)
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.machine.partition import Leaf, Position
    from ripple.engine.machine.way import Taken
    from ripple.engine.operators.asked_rows import AskedRows
    from ripple.engine.operators.division import Division
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.join_state import JoinState
    from ripple.engine.operators.joins.eager_rows import EagerRows
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.uncomputable import UncomputableRows
    from ripple.engine.operators.waiting import Holder, Mark, Waiting
    from ripple.engine.snapshots.saving import SavedTable
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.batch import Answers
    from ripple.model.pipeline.nodes import Fold, RowTable, SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding
    from ripple.model.schema.exported import Lent, Part

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_NONE = np.empty(0, np.int64)


@dataclass(slots=True)
class _Settled:
    """A fold with the node of its final rows, or a waiting node; and the readers of these.

    only_shows: whether outputs alone read them.
    """

    fold: Leaf | None
    waiting: Waiting | None
    ways: list[Way]
    only_shows: bool = False


class GraphEngine(Engine):
    """One partition of a pipeline with branches, or of several sources; see Engine.

    A fold's watermark is the minimum over the inputs of the sources that come to it, and over the
    streams of final rows that do.
    """

    _shares = False
    """Whether rows of a batch may be left to other partitions."""

    @property
    def counters_by_source(self) -> Mapping[str, Counters]:
        """Per source the counts of its records; their sum is ``counters``."""
        if len(self._ports) == 1:
            return dict.fromkeys(self._ports, self.counters)
        return {name: port.counters for name, port in self._ports.items()}

    def expect(self, division: Division) -> None:
        """Refuse keys of a source in a partition of others; see Engine."""
        if division.tells(self.plan):
            self._divisions |= dict.fromkeys(division.numbers, division)

    def apply(
        self,
        source: str,
        batch: Any,
        next_offset: int | None = None,
        offsets: Ints | None = None,
        rejected: int | None = None,
        *,
        watermarks_ns: Ints | None = None,
    ) -> list[RejectedRow]:
        """Consume a slice of one input's log; see Engine. source: the input."""
        if self._broken:
            self._refuse()
        self._watermarks_ns: Ints | None = watermarks_ns
        given = self._inputs.get(source) if type(source) is str else None
        if given is None:
            given = self._input(source)
        port = self._port_of[given.name]
        schema = batch.schema if isinstance(batch, TAKEN) else None
        if schema is None or not (schema is port.accepted or schema.equals(port.accepted)):
            batch = port.declared.of(batch)
            schema = batch.schema
        # Nullability may differ from batch to batch; of slices of one, this is the same object.
        port.accepted = schema
        if next_offset is None:
            next_offset = given.next_offset + batch.num_rows
        if (
            port.intake is not None
            and offsets is None
            and not rejected
            and self._is_taken_in(given, port, batch, next_offset)
        ):
            return []
        before = self.counters.copy()
        failed = self._apply_to(given, batch, next_offset, offsets, rejected)
        port.counters.add(self.counters, before)
        grown = self.counters.dead_lettered - before.dead_lettered - len(failed)
        if grown and self._rejected is not None:  # by the source, before they came here
            self._rejected[self._digests[port.source.name]] += grown
        return failed

    def _is_taken_in(
        self, given: Input, port: Port, batch: pa.RecordBatch | Part, next_offset: int
    ) -> bool:
        """Consume a batch at once, if all that it needs is to be held; else change nothing."""
        count, before = batch.num_rows, given.next_offset
        if next_offset != before + count or type(next_offset) is not int:
            return False
        if next_offset > given.offset_max or self._watermarks_ns is not None:
            return False
        if self._shares or given.name in self._divisions:
            return False
        assert port.intake is not None, "there is one"
        self._broken = True
        taken = port.intake.take(
            Columns(batch, port.layout),
            port.place_of(given.name, before),
            port.step,
            given.watermark_ns,
            given.out_of_order_ns,
        )
        self._broken = False
        if taken is None:
            return False
        given.next_offset = next_offset
        given.watermark_ns, late, future = taken
        self._reported = False
        for one in (self.counters, port.counters):
            one.consumed += count
            one.applied += count
            if late or future:
                one.mildly_late += late
                one.future += future
        return True

    def advance(self, source: str, watermark_ns: int, next_offset: int) -> None:
        """Consume a marker of an input's log; see Engine. source: the input."""
        given = self._input(source)
        given.check_marker(watermark_ns, next_offset)
        given.advance_to(next_offset, 0)
        folds = self._port_of[given.name].folds
        before_ns = [self._watermark_of(fold) for fold in folds]
        given.raise_watermark(watermark_ns)
        self._reported = False
        for fold, was_ns in zip(folds, before_ns, strict=True):
            fold.advance(was_ns, self._watermark_of(fold))

    def answer(self, name: str, answers: Answers) -> None:
        """Consume an entry of the log of answers; see Engine."""
        log = self._need_answers(name)
        asked = self._asked.get(answers.ask)
        rows = answers.rows
        inputs, offsets, indexes = (rows.column(one) for one in (INPUT, OFFSET, INDEX))
        at, index = np.asarray(offsets), np.asarray(indexes)
        names = np.asarray(inputs.to_pylist(), object)
        of = {one: np.flatnonzero(names == one) for one in dict.fromkeys(names.tolist())}
        for one, mine in of.items():
            given = self._input(one)
            if (ahead := at[mine] >= given.next_offset).any():
                raise InputError(
                    f"input {one!r}: an answer is to the record at offset {at[mine][ahead][0]}, "
                    f"and the next offset to read is {given.next_offset}"
                )
        log.advance_to(answers.next_offset, 0)
        self._reported = False
        if asked is None:
            return  # by other code, which had this question
        for one, mine in of.items():
            places = self._port_of[one].places(one, at[mine]) + index[mine]
            asked.answer(one, places, rows.take(pa.array(mine)))

    def unanswered(self) -> dict[str, pa.RecordBatch]:
        """Return the rows that wait for an answer since the last call; see Engine."""
        found = {name: asked.unanswered() for name, asked in self._asked.items()}
        return {name: rows for name, rows in found.items() if rows is not None}

    @property
    def asked_counts(self) -> dict[str, int]:
        """How many rows wait for the answers of each ask."""
        return {name: asked.count for name, asked in self._asked.items()}

    def ask_anew(self) -> None:
        """Let ``unanswered`` return all rows that wait again."""
        for one in self._asked.values():
            one.ask_anew()

    @property
    def asked_size(self) -> tuple[int, int]:
        """How many rows are held for answers, and their bytes."""
        each = self._asked.values()
        return sum(one.count for one in each), sum(one.nbytes for one in each)

    def close(self) -> None:
        """Declare all inputs ended: every window ends. What is due before comes first."""
        self._settle(self.watermark_ns)
        super().close()

    def _prepare(self, plan: Plan, inputs: Sequence[str] | None, start: Mapping[str, int]) -> None:
        names = names_of(plan, inputs, start)
        by_source = inputs_by_source(plan, names)
        self._ports = {
            source.name: Port(plan, source, by_source[source.name]) for source in plan.sources
        }
        self._origins = RowOrigins(list(self._ports.values()))
        self._port_of = {name: port for port in self._ports.values() for name in port.inputs}
        self._inputs = {}
        for name in names:
            port = self._port_of[name]
            first = start.get(name, 0)
            self._inputs[name] = Input.of(port.source, name, first, port.offset_max)
        self._only = next(iter(self._inputs.values())) if len(names) == 1 else None
        self._divisions: dict[str, Division] = {}
        self._watermarks_ns = None

    def _begin(
        self, plan: Plan, graph: Graph, *, staged: bool
    ) -> tuple[Sequence[Leaf], Sequence[Fold], Mapping[str, StreamRows]]:
        folds = [self._first_fold(graph, fold) for fold in plan.event_folds]
        self._is_stepwise = any(fold.stepwise for fold in folds)
        self._orders = self._shares or self._is_stepwise  # else places follow from the batch
        shown = {output.of: output for output in plan.outputs if output.is_stream}
        streams = {name: StreamRows(output.fields) for name, output in shown.items()}
        self._feeds: dict[str, Feeds] = {}
        self._settling: list[_Settled] = []
        self._holders: list[Holder] = []
        self._asked: dict[str, AskedRows] = {}
        tables = self._lay(plan, graph, {fold.fold.name: fold for fold in folds})
        after = [way for one in self._settling for way in one.ways]
        ways = [*self._ports.values(), *after]
        sides = [side for one in self._holders for side in one.sides]
        for way in ways:
            way.lead(plan, folds, streams, sides, list(self._asked.values()))
        for one in self._settling:
            one.only_shows = all(way.only_shows for way in one.ways)
        # By the digest of a node; None after a start from a snapshot without these counts.
        self._rejected: Counter[str] | None = Counter()
        self._digests = {node.of.name: digest_of(node.of.node_key) for node in plan.computed}
        for fold in plan.event_folds:  # a letter of a calendar names the window, which is no node
            if fold.window is not None:
                self._digests.setdefault(fold.window.name, digest_of(fold.node_key))
        lowest = (*plan.event_folds, *plan.row_tables)
        above = [fold for fold in self._folds_here(plan, staged=staged) if fold not in lowest]
        return [*folds, *tables], above, streams

    def _lay(self, plan: Plan, graph: Graph, folds: Mapping[str, EventFold]) -> list[EagerRows]:
        """Make the nodes that wait, and note in which order they and the folds are settled.

        Returns the row tables.
        """
        tables: list[EagerRows] = []
        of_joins = {table.input: table for table in plan.row_tables}
        marks: dict[str, Waiting] = {}
        self.waiting = marks

        def feeds(name: str) -> Feeds:
            found: list[Mark] = []
            for root in plan.roots_of(name):
                port = self._ports.get(root)
                inputs = [] if port is None else [self._inputs[one] for one in port.inputs]
                found += inputs if port is not None else [marks[root]]
            return self._feeds_of(found)

        for node, _ in inputs_first(plan):
            waiting: Waiting | None = None
            if isinstance(node, Distinct | Scan | StreamJoin):
                sides = [feeds(side.reads) for side in sides_of(node)]
                waiting = marks[node.name] = self._holder(node, sides)
                if (table := of_joins.get(node.name)) is None:
                    self._settling.append(_Settled(None, waiting, [Way(node.name)]))
                    continue
                self._feeds[table.name] = self._feeds_of([one for of in sides for one in of.marks])
                tables.append(self._row_table(graph, table, node, waiting))
                self._settling.append(_Settled(tables[-1], waiting, []))
            elif isinstance(node, Ask):
                waiting = marks[node.name] = self._asker(node, plan.roots_of(node.reads))
                self._settling.append(_Settled(None, waiting, [Way(node.name)]))
            elif node.name in folds:
                fold, names = folds[node.name], [one.name for one in plan.finals_of(node.name)]
                self._feeds[node.name] = feeds(node.name)
                if names:
                    waiting = self._final_rows(plan, fold)
                    marks |= dict.fromkeys(names, waiting)
                self._settling.append(_Settled(fold, waiting, [Way(name) for name in names]))
        return tables

    def _feeds_of(self, marks: Sequence[Mark]) -> Feeds:
        return Feeds(marks, [*self._inputs.values()])

    # Few plans have such nodes, and their modules take time to import.

    def _final_rows(self, plan: Plan, fold: EventFold) -> Waiting:
        from ripple.engine.operators.final_rows import FinalRows  # noqa: PLC0415
        from ripple.engine.operators.windowed_fold import WindowedFold  # noqa: PLC0415

        assert isinstance(fold, WindowedFold), "final rows are those of windows"
        return FinalRows(fold, self._feeds[fold.fold.name], len(plan.sources) * SPAN)

    def _row_table(self, graph: Graph, table: RowTable, node: Holding, join: Waiting) -> EagerRows:
        if isinstance(node, BookScan):
            from ripple.engine.operators.book_scan_rows import BookScanRows  # noqa: PLC0415
            from ripple.engine.operators.book_table_rows import BookTableRows  # noqa: PLC0415

            assert isinstance(join, BookScanRows), "a book has one holder"
            return BookTableRows(graph, table, join)
        if isinstance(node, StepScan):
            from ripple.engine.operators.last_table_rows import LastTableRows  # noqa: PLC0415
            from ripple.engine.operators.step_scan_rows import StepScanRows  # noqa: PLC0415
            from ripple.engine.operators.step_table_rows import StepTableRows  # noqa: PLC0415

            assert isinstance(join, StepScanRows), "a scan has one holder"
            if node.timers:
                from ripple.engine.operators.timed_table_rows import (  # noqa: PLC0415
                    TimedLastTableRows,
                    TimedTableScanRows,
                )

                assert isinstance(join, TimedTableScanRows), "timers have their holder"
                if isinstance(table, LastTable):
                    return TimedLastTableRows(graph, table, join)
                from ripple.engine.operators.timed_step_rows import (  # noqa: PLC0415
                    TimedStepTableRows,
                )

                return TimedStepTableRows(graph, table, join)
            if isinstance(table, LastTable):
                return LastTableRows(graph, table, join)
            return StepTableRows(graph, table, join)
        from ripple.engine.operators.joins.asof_rows import AsofRows  # noqa: PLC0415

        if isinstance(join, AsofRows):
            from ripple.engine.operators.joins.row_table_rows import RowTableRows  # noqa: PLC0415

            return RowTableRows(graph, table, join)
        from ripple.engine.operators.joins.interval_rows import PiecewiseRows  # noqa: PLC0415
        from ripple.engine.operators.joins.pair_table_rows import PairTableRows  # noqa: PLC0415

        assert isinstance(join, PiecewiseRows), "no other joins show their rows at once"
        return PairTableRows(graph, table, join)

    def _holder(self, node: Holding, feeds: Sequence[Feeds]) -> Waiting:
        holder: Holder
        sides = [one.marks for one in feeds]
        if isinstance(node, Distinct):
            from ripple.engine.operators.distinct_rows import DistinctRows  # noqa: PLC0415

            holder = DistinctRows(node, feeds[0], self._origins)
        elif isinstance(node, StepScan) and node.timers and node.is_eager:
            from ripple.engine.operators.timed_table_rows import (  # noqa: PLC0415
                TimedTableScanRows,
            )

            holder = TimedTableScanRows(node, feeds[0], self._origins)
        elif isinstance(node, StepScan) and node.timers:
            from ripple.engine.operators.timed_scan_rows import TimedScanRows  # noqa: PLC0415

            holder = TimedScanRows(node, feeds[0], self._origins)
        elif isinstance(node, StepScan):
            from ripple.engine.operators.step_scan_rows import StepScanRows  # noqa: PLC0415

            holder = StepScanRows(node, feeds[0], self._origins)
        elif isinstance(node, RunningScan):
            from ripple.engine.operators.running_scan_rows import (  # noqa: PLC0415
                RunningScanRows,
            )

            holder = RunningScanRows(node, feeds[0], self._origins)
        elif isinstance(node, LastScan):
            from ripple.engine.operators.last_scan_rows import LastScanRows  # noqa: PLC0415

            holder = LastScanRows(node, feeds[0], self._origins)
        elif isinstance(node, BookScan):
            from ripple.engine.operators.book_scan_rows import BookScanRows  # noqa: PLC0415

            holder = BookScanRows(node, feeds[0], self._origins)
        elif isinstance(node, IntervalJoin) and node.shows_right:
            from ripple.engine.operators.joins.outer_interval_rows import (  # noqa: PLC0415
                OuterIntervalRows,
            )

            holder = OuterIntervalRows(node, sides, self._origins)
        elif isinstance(node, IntervalJoin):
            from ripple.engine.operators.joins.interval_rows import IntervalRows  # noqa: PLC0415

            holder = IntervalRows(node, sides, self._origins)
        else:
            from ripple.engine.operators.joins.asof_rows import AsofRows  # noqa: PLC0415

            assert isinstance(node, AsofJoin), "no other joins"
            holder = AsofRows(node, sides, self._origins)
        self._holders.append(holder)
        return holder

    def _asker(self, node: Ask, roots: Sequence[str]) -> AskedRows:
        from ripple.engine.operators.asked_rows import AskedRows  # noqa: PLC0415

        names = [name for root in roots for name in self._ports[root].inputs]
        inputs = {name: self._inputs[name] for name in names}
        asked = self._asked[node.name] = AskedRows(node, inputs, self._origins)
        return asked

    def _table_of(self, fold: Fold) -> tuple[SourceSpec, bool] | None:
        port = self._ports.get(fold.input)
        is_newest = fold.reads == fold.input and fold.expiry is None
        if port is None or port.source.table is None or not is_newest:
            return None
        return port.source, len(port.inputs) <= 1

    def _watermark_of(self, leaf: Leaf) -> int:
        name = leaf.fold.name
        return self.watermark_under(name) if leaf.fold.expiry is None else self._feeds[name].open_ns

    def watermark_under(self, fold: str) -> int:
        """Return the merged watermark of the inputs of a fold."""
        while fold not in self._feeds:
            fold = self.plan.fold(fold).input
        return self._feeds[fold].watermark_ns

    def _settle(self, watermark_ns: int) -> bool:
        del watermark_ns
        for one in self._settling:
            if one.fold is not None:
                one.fold.settle(self._watermark_of(one.fold))
            waiting = one.waiting
            if waiting is None:
                continue
            while (rows := waiting.take()) is not None:
                if not one.only_shows:
                    self._pass_on(waiting, rows, one.ways)
                    continue
                for way in one.ways:
                    for stream in way.streams.values():
                        waiting.show(stream, way.root, rows)
        frees = False
        for leaf in self._leaves:  # any() would be a call
            if leaf.frees:
                frees = True
        return frees

    def _pass_on(self, waiting: Waiting, rows: Rows, ways: Sequence[Way]) -> None:
        """Send rows of a waiting node to its readers; rows that a step refuses are lost."""
        refused: dict[int, RejectedRow] = {}
        asked = self._asked.get(ways[0].root) if ways else None
        for way in ways:
            taken = rows.branch()
            fate = Fate(taken.count, taken)
            branches = way.branches(taken, fate)
            too_late = {} if asked is None else asked.too_late(way.latenesses_ns)
            held, folded = way.admitted(branches, fate, too_late)
            for bad in fate.dead:
                refused.setdefault(bad.row, bad)
            for side, taken in held:
                fate.count_in(taken)
                side.hold(taken, waiting.identities(taken))
            for fold, taken in folded:
                fate.count_in(taken)
                if taken.count:
                    fold.apply(taken, -1)
            for name, stream in way.streams.items():
                shown = way.branch_of(name, branches, name)
                fate.count_in(shown)
                if shown.count:
                    waiting.show(stream, way.root, shown)
            if asked is not None:
                asked.lose_late(fate.too_late)
        if refused:
            waiting.lose(refused.values())

    def _consume(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        """Judge rows of one input, transform them in all branches, then fold and show them."""
        count, port = batch.num_rows, self._port_of[given.name]
        rows = Rows(Columns(batch, port.layout), count, port.places_before(given, count, offsets))
        port.admit(rows, given)
        before_ns, origin = given.watermark_ns, rows.origin
        times, too_late = self._judged(given, port, rows, count)
        if self._is_taken(given, port, rows, too_late):
            self.counters.applied += count
            return []
        befores_ns = self._befores(given, port, rows, count, before_ns)
        fate = Fate(count, rows)
        branches = port.branches(rows, fate)
        found = port.taken(branches, fate, too_late)
        self._leave_to_others(port, offsets, found)
        dead, division = fate.dead, self._divisions.get(given.name)
        for one, taken in found.held:
            if division is not None and taken.count:
                division.check(given.name, taken, one.key, divides=False)
            one.hold(taken)
        for fold, taken in found.folded:
            crossing = -1
            if fold.interval_ns is not None and times is not None:
                crossing = self._crossing(given, fold, times, before_ns, origin)
            if taken.count:
                self._apply(fold, given, taken, crossing)
            elif crossing >= 0:
                fold.show_waiting()
        for asked, taken in found.asked:
            asked.hold(given.name, taken, befores_ns)
        for stream, taken in found.shown:
            assert taken.offsets is not None
            stream.add(given.name, taken, *port.identities(taken.offsets))
        self._count(count, dead, fate.very_late)
        return dead

    def _is_taken(
        self, given: Input, port: Port, rows: Rows, too_late: Mapping[int, Mask | None]
    ) -> bool:
        """Give a batch to its only reader, if all its records count, with a row each."""
        reader = port.only_fold if port.alone is None else port.alone
        if reader is None or self._shares or given.name in self._divisions:
            return False
        if any(late is not None for late in too_late.values()):
            return False
        reader.admit(rows)
        if rows.rejected:
            return False
        if port.alone is not None:
            port.alone.hold(rows)
        elif port.only_fold is not None and rows.count:
            port.only_fold.apply(rows, -1)
        return True

    def _crossing(
        self,
        given: Input,
        fold: EventFold,
        times: Ints | Lent,
        before_ns: int,
        origin: Ints | None,
    ) -> int:
        """Return the last record of a batch that crosses an interval of a fold, -1 for none."""
        assert fold.interval_ns is not None, "it has an interval"
        crossing = watermark.last_crossing(
            times,
            before_ns,
            given.out_of_order_ns,
            given.future_ns_max,
            self._watermark_beside(given, fold),
            fold.interval_ns,
        )
        return crossing if crossing < 0 or origin is None else int(origin[crossing])

    def _befores(self, given: Input, port: Port, rows: Rows, count: int, before_ns: int) -> Ints:
        """Return per record of a batch the watermark before it; of none where nothing is asked."""
        if not port.asks:
            return _NONE
        from ripple.engine.operators.asked_rows import watermarks_before  # noqa: PLC0415

        return watermarks_before(rows, count, before_ns, given.out_of_order_ns)

    def _leave_to_others(self, port: Port, offsets: Ints | None, found: Taken) -> None:
        """Drop the rows of a batch that other partitions count; here there are none."""

    def _count(self, count: int, dead: Sequence[RejectedRow], very_late: int) -> None:
        """Count the records of a batch."""
        self.counters.mildly_late -= very_late  # which were behind, too
        self.counters.dead_lettered += len(dead)
        self.counters.very_late += very_late
        self.counters.applied += count - len(dead) - very_late
        if self._rejected is not None:
            self._rejected.update(self._digests[bad.step] for bad in dead)

    def _watermark_beside(self, given: Input, fold: EventFold) -> int:
        """Return the watermark of the other inputs of a fold."""
        feeds = self._feeds[fold.fold.name]
        others = [one.watermark_ns for one in feeds.marks if one is not given]
        return min(others, default=watermark.END)

    def _apply(self, fold: EventFold, given: Input, rows: Rows, crossing: int) -> None:
        """Fold rows of an input, and check that new keys belong to the partition."""
        known = known_keys(fold, self._port_of[given.name].source)
        division = self._divisions.get(given.name)
        fold.apply(rows, crossing)
        if division is not None and len(fold.keys.index) > known:
            division.check(given.name, rows, fold.fold.key, divides=False)

    def _judged(
        self, given: Input, port: Port, rows: Rows, count: int
    ) -> tuple[Ints | Lent | None, dict[int, Mask | None]]:
        """Judge rows and move the watermark past them; reject rows with impossible times.

        Returns the times of all, and per lateness which records of the batch are later: bool[count]
        or None where none is.
        """
        too_late: dict[int, Mask | None] = dict.fromkeys(port.latenesses_ns)
        time_field = port.source.time_field
        if time_field is None:
            return None, too_late
        lent = rows.columns.lent(time_field)
        if lent is not None and self._watermarks_ns is None:
            near_ns = min(port.future_ns, given.future_ns_max)
            after_ns = watermark.if_on_time(
                lent, given.watermark_ns, given.out_of_order_ns, near_ns
            )
            if after_ns is not None:
                rows.times_ns, given.watermark_ns = lent, after_ns
                return lent, too_late
        times: Ints = np.asarray(numbers(rows.columns[time_field], Kind.INT).values)
        rows.times_ns = times
        if self._watermarks_ns is not None:
            self._judge_by_watermarks(given, rows, self._watermarks_ns, too_late)
            return times, too_late
        before_ns, future_ns = given.watermark_ns, port.future_ns
        verdicts, late, _, future, refused = given.judge(
            times, watermark.ANY_LATENESS_NS, future_ns
        )
        if verdicts is None:
            return times, too_late
        self.counters.mildly_late += late
        self.counters.future += future
        for lateness_ns in port.latenesses_ns if late else ():
            _, found, _, very_late, *_ = watermark.judge(
                times, before_ns, given.out_of_order_ns, lateness_ns, future_ns, given.future_ns_max
            )
            if very_late:
                mask = np.zeros(count, np.bool_)
                mask[rows.origins[found == watermark.VERY_LATE]] = True
                too_late[lateness_ns] = mask
        if refused:
            reject_beyond(rows, verdicts, port.source)
        return times, too_late

    def _judge_by_watermarks(
        self, given: Input, rows: Rows, watermarks_ns: Ints, too_late: dict[int, Mask | None]
    ) -> None:
        """Judge rows of an input whose other records are elsewhere, by the watermark after each.

        A late one leaves the watermark unchanged, so the one before is the same; and one on time is
        not below the one after. The sender has refused impossible ones.
        """
        if not len(watermarks_ns):
            return
        given.raise_watermark(int(watermarks_ns[-1]))
        origins, times = rows.origins, np.asarray(rows.times_ns)
        late = np.flatnonzero(times < watermarks_ns[origins])
        self.counters.mildly_late += len(late)
        if not len(late):
            return
        at = origins[late]
        # Further apart than int64 reaches.
        behind = watermarks_ns[at].view(np.uint64) - times[late].view(np.uint64)
        for lateness_ns in too_late:
            found = at[behind > np.uint64(lateness_ns)]
            if len(found):
                mask = np.zeros(len(watermarks_ns), np.bool_)
                mask[found] = True
                too_late[lateness_ns] = mask

    @property
    def waiting_count(self) -> int:
        """The state held until a watermark has passed it: also rows of joins, and of distinct."""
        return super().waiting_count + sum(one.waiting_count for one in self._holders)

    @property
    def nbytes(self) -> int:
        """Bytes held by keys, state and rows."""
        return super().nbytes + sum(one.nbytes for one in self._kept)

    def _uncomputable(self) -> dict[str, list[UncomputableRows]]:
        return super()._uncomputable() | {one.node.name: [one.lost] for one in self._kept}

    @property
    def _kept(self) -> Sequence[Holder | AskedRows]:
        """The nodes with state of their own: holders of rows, and asks."""
        return [*self._holders, *self._asked.values()]

    @property
    def join_states(self) -> dict[str, JoinState]:
        """Where each join is."""
        found = {one.node.name: one.state for one in self._holders if one.state is not None}
        return super().join_states | found

    # --- snapshots ---

    def _position(self) -> Position:
        ended = {
            name: given.before_end_ns
            for name, given in self._inputs.items()
            if given.watermark_ns == watermark.END
        }
        return super()._position() | {"ends_ns": ended}

    def _resume(self, snapshot: Snapshot) -> None:
        super()._resume(snapshot)
        for name, given in self._inputs.items():
            given.before_end_ns = snapshot.ends_ns.get(name, watermark.NONE)

    def _whole(self) -> dict[str, SavedTable]:
        return {
            held_key(one.node, side): table
            for one in self._kept
            for side, table in enumerate(one.savings())
        }

    def _load_state(self, snapshot: Snapshot) -> None:
        # First, since the watermarks of nodes behind follow from the rows held.
        for asked in self._asked.values():
            names = [held_key(asked.node, side) for side in range(2)]
            if not all(name in snapshot.tables for name in names):
                raise SnapshotError(f"the state of {asked.node.name!r} is missing")
            asked.load([snapshot.tables[name] for name in names])
        # Then the rows of joins, of which row tables are made, and folds above those.
        for one in self._holders:
            names = [held_key(one.node, side) for side in range(tables_of(one.node))]
            if not all(name in snapshot.tables for name in names):
                raise SnapshotError(f"the state of {one.node.name!r} is missing")
            one.load([snapshot.tables[name] for name in names])
        super()._load_state(snapshot)

    def _counted(self) -> dict[str, int]:
        counts = super()._counted()
        for name, each in self.counters_by_source.items() if len(self._ports) > 1 else ():
            counts |= {source_counter(name, of): n for of, n in each.as_dict().items()}
        return counts

    def _rejected_counters(self) -> Mapping[str, int]:
        return {f"{REJECTED}{digest}": count for digest, count in (self._rejected or {}).items()}

    def _load(self, snapshot: Snapshot, freed_digests: Mapping[str, int]) -> None:
        super()._load(snapshot, freed_digests)
        self._rejected = snapshot.rejected

    def _count_on(self, counts: dict[str, int]) -> None:
        for one in self._kept:
            one.lost.final = counts.pop(uncomputable_counter(one.node.name), 0)
        for name, port in self._ports.items() if len(self._ports) > 1 else ():
            mine = {of: counts.pop(source_counter(name, of)) for of in Counters().as_dict()}
            port.counters = Counters(**mine)
        super()._count_on(counts)

    def check_invariants(self) -> None:
        """Raise AssertionError when counters, graph or digests contradict themselves."""
        super().check_invariants()
        for counters in self.counters_by_source.values():
            counters.check_invariants()
