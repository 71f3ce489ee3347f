"""The partition state machine: events in, changes out, a function of the consumed prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import need_bool, shown
from ripple.core.calls import called
from ripple.core.errors import InputError, PlanError
from ripple.engine.graph.node import Graph
from ripple.engine.kernels.columns import Columns, Layout
from ripple.engine.machine.inputs import Input
from ripple.engine.machine.partition import Leaf, Partition, Position
from ripple.engine.operators.admission import Admission, with_declared
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.event_fold import EventFold
from ripple.engine.operators.newest_fold import NewestFold
from ripple.engine.operators.rows import RejectedRow, Rows
from ripple.engine.snapshots.fitting import check_sources, digests_to_make
from ripple.engine.snapshots.snapshot import Snapshot, SnapshotError
from ripple.model.expression.bound import numbers
from ripple.model.expression.typed import Kind
from ripple.model.pipeline.division import need_chain
from ripple.model.pipeline.input_names import is_answers, is_markers, of_sources
from ripple.model.pipeline.nodes import Fold
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.topology import stage_folds
from ripple.model.schema.exported import Part
from ripple.model.window import duration_ns, watermark
from ripple.model.window.spec import FUTURE_TOLERANCE_DEFAULT

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.machine.counters import Counters
    from ripple.engine.operators.division import Division
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.model.batch import Answers, IdleMarker
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.schema.exported import Lent

    Ints = npt.NDArray[np.int64]


TAKEN = (pa.RecordBatch, Part)  # batches that need no conversion


class Engine(Partition):
    """One partition of a pipeline, or of its first stage, fed with events.

    State, counters and outputs are a function of which inputs were consumed (the cut): never of
    batch sizes, of how inputs interleave, of time or of restarts. No I/O, no clock. The one
    exception: with several inputs, the partial results of OnInterval and OnCount for a window
    *before its end* also depend on the order in which the inputs were read; from its end on they do
    not.
    """

    def __new__(cls, *args: Any, **named: Any) -> Engine:
        """Make the engine that computes ``plan``: a GraphEngine unless it is a chain."""
        plan = args[0] if args else named.get("plan")
        if cls is Engine and isinstance(plan, Plan) and not plan.is_chain:
            # Most pipelines are chains.
            from ripple.engine.machine.graph_engine import GraphEngine  # noqa: PLC0415

            return super().__new__(GraphEngine)
        return super().__new__(cls)

    @called("rp.Engine", "plan")
    def __init__(
        self,
        plan: Plan,
        partition: int = 0,
        inputs: Sequence[str] | None = None,
        *,
        start: Mapping[str, int] = MappingProxyType({}),
        staged: bool = False,
        retractions: bool = False,
        finals: bool = False,
    ) -> None:
        """Make an empty partition.

        inputs: the names of all input partitions that will ever feed it, the plan's source by
        default. The watermark waits for every one of them, except for a log of markers of idle
        inputs or of answers, which has no events. start: the first offset to read of
        inputs that do not begin at 0. staged: compute only the plan's first stage, for the
        ``Follower`` of each partition of the next one. retractions, finals: let ``stabilize`` also
        return changed rows as they were, and rows that became final.
        """
        self._prepare(plan, inputs, start)
        self._markers = _log_in(plan, inputs, start, is_markers)
        self._answers = _log_in(plan, inputs, start, is_answers)
        has_logs = self._markers is not None or self._answers is not None
        self._only_in_cut = None if has_logs else self._only
        need_bool("Engine: staged", staged, InputError)
        graph = Graph()
        leaves, above, streams = self._begin(plan, graph, staged=staged)
        super().__init__(
            plan,
            partition,
            graph,
            leaves,
            above,
            stage=0 if staged else None,
            retractions=retractions,
            finals=finals,
            # With one input, rows are touched by events, in their order.
            in_order=self._only is not None,
            streams=streams,
        )

    # The signature of the class for inspect and help.
    __new__.__wrapped__ = __init__  # type: ignore[attr-defined]

    def _begin(
        self, plan: Plan, graph: Graph, *, staged: bool
    ) -> tuple[Sequence[Leaf], Sequence[Fold], Mapping[str, StreamRows]]:
        """Make the folds of events; return them, the folds above them, and outputs of events."""
        need_chain(plan, "a stage, or Spark,")
        first, *above = self._folds_here(plan, staged=staged)
        window = first.window
        # Without windows nothing is too late: the result does not depend on arrival times.
        self._lateness_ns = window.lateness_ns if window else watermark.ANY_LATENESS_NS
        self._judge_by(first)
        self._fold = self._first_fold(graph, first)
        self._is_stepwise = self._fold.stepwise
        # Steps may make nulls; required fields of the source are there.
        self._admits_all = not plan.steps and self._fold.admits_all(self._admission.required)
        return (self._fold,), above, {}

    def _prepare(
        self,
        plan: Plan,
        inputs: Sequence[str] | None,
        start: Mapping[str, int],
    ) -> None:
        """Check the arguments and make the inputs, with their validation."""
        names = names_of(plan, inputs, start)
        # An input's number and offset share 64 bits.
        offset_max = watermark.END // len(names)
        self._inputs = {
            name: Input.of(plan.source, name, start.get(name, 0), offset_max) for name in names
        }
        # The one input that nearly every engine has; None of several.
        self._only = next(iter(self._inputs.values())) if len(names) == 1 else None
        self._table = (plan.source, len(names) == 1) if plan.source.table is not None else None
        self._time_field = plan.source.time_field
        self._rank = {name: rank for rank, name in enumerate(names)}
        self._accepted = pa.schema(arrow_fields(plan.source.fields_taken))
        self._layout = Layout(self._accepted)
        self._admission = Admission(plan.source, self._layout)
        self._division: Division | None = None

    def _judge_by(self, fold: Fold) -> None:
        """Judge records by the future tolerance of ``fold``, and note whether it orders them."""
        window = fold.window
        self._future_ns = window.future_ns if window else duration_ns(FUTURE_TOLERANCE_DEFAULT)
        # Of one source, so that all inputs say the same.
        self._near_ns = min(self._future_ns, next(iter(self._inputs.values())).future_ns_max)
        # Whether an aggregate needs an event's place in the log.
        self._orders = any(one.aggregate.ordered for one in fold.aggregates)

    def _folds_here(self, plan: Plan, *, staged: bool) -> tuple[Fold, ...]:
        return stage_folds(plan, 0) if staged else plan.folds

    def _first_fold(self, graph: Graph, fold: Fold) -> EventFold:
        table = self._table_of(fold)
        if table is not None:
            source, is_of_one = table
            return NewestFold(graph, fold, source, frees=is_of_one)
        if fold.timing is None:
            return EventFold(graph, fold)
        if fold.window is None:
            from ripple.engine.operators.ending_fold import EndingFold  # noqa: PLC0415

            return EndingFold(graph, fold)
        from ripple.engine.operators.windowed_fold import WindowedFold  # noqa: PLC0415 - many have no windows

        return WindowedFold(graph, fold)

    def _table_of(self, fold: Fold) -> tuple[SourceSpec, bool] | None:
        """Return the source of the table that a fold makes, and whether it has one input.

        None for any other fold.
        """
        del fold
        return self._table

    @classmethod
    def restore(
        cls, plan: Plan, snapshot: Snapshot, *, retractions: bool = False, finals: bool = False
    ) -> Engine:
        """Return the partition as it was at the snapshot's cut.

        The plan may have other sinks than the snapshot's. retractions, finals: as for a new engine.
        Raises SnapshotError when a fold, a step on its results or the events are other ones, or
        when digests do not match.
        """
        _check_plan(plan)
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(f"Engine: snapshot must be a Snapshot, not {shown(snapshot)}")
        check_sources(plan, snapshot)
        if snapshot.stage:
            raise SnapshotError(
                f"the snapshot is of stage {snapshot.stage}: a Follower restores it"
            )
        engine = cls(
            plan,
            snapshot.partition,
            tuple(snapshot.cut),
            staged=snapshot.stage is not None,
            retractions=retractions,
            finals=finals,
        )
        engine._load(snapshot, digests_to_make(plan, snapshot))
        return engine

    @classmethod
    def adopt(cls, plan: Plan, snapshot: Snapshot, freed_digests: Mapping[str, int]) -> Engine:
        """Return the partition with state that another plan has left and that was made to fit.

        Unlike with ``restore``, a fold over results may lack its table, also a fold of the next
        stage, and is computed from the rows below it; freed_digests: of each shown fold that needs
        a new digest, the digest of its rows that were freed before, 0 where none were. Raises
        SnapshotError when other digests do not match or rows that would be needed were freed.
        """
        staged = snapshot.stage is not None
        engine = cls(plan, snapshot.partition, tuple(snapshot.cut), staged=staged)
        engine._computes_groups = True
        engine._load(snapshot, freed_digests)
        return engine

    @property
    def counters_by_source(self) -> Mapping[str, Counters]:
        """Per source the counts of its records: of the one source, ``counters``."""
        return {self.plan.source.name: self.counters}

    def expect(self, division: Division) -> None:
        """Refuse keys that do not belong where they come from, if it says where they do."""
        self._division = division if division.tells(self.plan) else None

    # --- events ---

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
        """Consume a slice of one input's log.

        batch: rows with the fields of the plan's source, in offset order, following those applied
        before: a ``pyarrow.RecordBatch``, a table or a frame, a row as a dict or an instance of a
        record class, or a list of rows. next_offset: the offset after them, by default without any
        between; offsets without rows were rejected by the
        source: all, or as many as ``rejected`` says, and then the others are holes, which do not
        count. offsets: of the rows, int64[n], needed when there are such gaps. watermarks_ns: of
        the input after each row, int64[n], where records elsewhere have part in it: in a chain,
        whose late records do not come, it changes nothing. Returns the rows that could not be
        processed, for the dead letters; raises InputError when the batch does not fit, with nothing
        consumed. After any other error (a batch function or a user's aggregate that raised) the
        engine takes no more.
        """
        del watermarks_ns
        if self._broken:
            self._refuse()
        if not isinstance(batch, TAKEN) or not batch.schema.equals(self._accepted):
            batch = with_declared(batch, self.plan.source)
            self._accepted = batch.schema  # nullability may differ from batch to batch
        given = self._inputs.get(source) if type(source) is str else None
        if given is None:
            given = self._input(source)
        if next_offset is None:
            next_offset = given.next_offset + batch.num_rows
        return self._apply_to(given, batch, next_offset, offsets, rejected)

    def _apply_to(
        self,
        given: Input,
        batch: pa.RecordBatch | Part,
        next_offset: int,
        offsets: Ints | None,
        rejected: int | None,
    ) -> list[RejectedRow]:
        """Consume a slice of an input's log, with the columns that the source declares."""
        count = batch.num_rows
        if offsets is not None:
            given.check_offsets(offsets, next_offset, count)
        refused = given.advance_to(next_offset, count, rejected)
        if offsets is None and self._orders:
            offsets = np.arange(next_offset - count, next_offset)
        self.counters.consumed += count + refused
        if refused:
            self.counters.dead_lettered += refused
        self._reported = False
        self._broken = True
        if self._is_stepwise:
            failed = self._consume_each(given, batch, offsets)
        else:
            failed = self._consume(given, batch, offsets)
        self._broken = False
        return failed

    def _consume_each(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        rejected: list[RejectedRow] = []
        for at in range(batch.num_rows):
            own = None if offsets is None else offsets[at : at + 1]
            alone = self._consume(given, batch.slice(at, 1), own)
            rejected.extend(RejectedRow(at, bad.step, bad.reason) for bad in alone)
            self._settle(self.watermark_ns)
        return rejected

    def advance(self, source: str, watermark_ns: int, next_offset: int) -> None:
        """Consume a marker of an input's log: no event below ``watermark_ns`` follows in it.

        This is how the windows of an idle input close, and close again in a replay. next_offset:
        the offset after the marker, which takes one, or none if it is in no log. Raises InputError
        when records before it were not applied, or a number is out of range; nothing is consumed.
        """
        given = self._input(source)
        given.check_marker(watermark_ns, next_offset)
        given.advance_to(next_offset, 0)
        before_ns = self.watermark_ns
        given.raise_watermark(watermark_ns)
        self._reported = False
        self._fold.advance(before_ns, self.watermark_ns)

    def mark(self, name: str, marker: IdleMarker) -> None:
        """Consume an entry of the log of markers ``name``: an input was silent up to there.

        Raises InputError unless the input was read exactly to where the marker counts, and the log
        of markers to the entry; nothing is consumed.
        """
        log = self._markers
        if log is None or log.name != name:
            raise InputError(f"no log of markers {shown(name)} was declared")
        given = self._input(marker.input)
        if given.next_offset != marker.offset:
            raise InputError(
                f"input {given.name!r}: a marker counts after offset {marker.offset}, and the next "
                f"offset to read is {given.next_offset}"
            )
        if not log.next_offset < marker.next_offset:
            raise InputError(
                f"{name}: the marker before offset {marker.next_offset} was read already, and the "
                f"next offset to read is {log.next_offset}"
            )
        given.check_marker(marker.watermark_ns, given.next_offset)
        log.advance_to(marker.next_offset, 0)
        self.advance(given.name, marker.watermark_ns, given.next_offset)

    def answer(self, name: str, answers: Answers) -> None:
        """Consume an entry of the log of answers ``name``.

        The first answer to a row counts; one to a row that waits for none is passed over. Raises
        InputError for one to a record that was not applied yet; nothing is consumed.
        """
        self._need_answers(name).advance_to(answers.next_offset, 0)  # by other code, which asked
        self._reported = False

    def _need_answers(self, name: str) -> Input:
        log = self._answers
        if log is None or log.name != name:
            raise InputError(f"no log of answers {shown(name)} was declared")
        return log

    def unanswered(self) -> dict[str, pa.RecordBatch]:
        """Return per ask the rows that wait for an answer and came since the last call.

        After a restart, all. They have their identities before their fields.
        """
        return {}

    def ask_anew(self) -> None:
        """Let ``unanswered`` return all rows that wait again: their calls were given up."""

    @property
    def asked_size(self) -> tuple[int, int]:
        """How many rows are held for answers, and their bytes."""
        return 0, 0

    def close(self) -> None:
        """Declare all inputs ended: every window ends."""
        for name, given in self._inputs.items():
            self.advance(name, watermark.END, given.next_offset)

    def _consume(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        """Judge, transform and fold rows of one input."""
        order = None if offsets is None or not self._orders else self._order(given, offsets)
        rows = Rows(Columns(batch, self._layout), batch.num_rows, order)
        if not self._admission.passes(rows.columns):
            self._admission.refuse(rows)
        crossing = self._judge(given, rows)
        judged = rows.count + len(rows.rejected)
        if self.plan.steps:
            rows.run(self.plan.steps)
        if not self._admits_all:
            self._fold.admit(rows)
        if rows.count:
            if self._division is None:
                self._fold.apply(rows, crossing)
            else:
                self._apply_divided(self._division, given, rows, crossing)
        elif crossing >= 0:
            self._fold.show_waiting()
        rejected = rows.rejected
        if rejected:
            self.counters.dead_lettered += len(rejected)
        self.counters.applied += judged - len(rejected)
        return rejected

    def _apply_divided(self, division: Division, given: Input, rows: Rows, crossing: int) -> None:
        """Fold rows, and refuse new keys that do not belong to their input."""
        known = known_keys(self._fold, self.plan.source)
        self._fold.apply(rows, crossing)
        if len(self._fold.keys.index) > known:
            divides = self.plan.source.table is None
            division.check(given.name, rows, self._fold.fold.key, divides=divides)

    def _order(self, given: Input, offsets: Ints) -> Ints:
        """Return the order of events of one time."""
        return offsets * len(self._rank) + self._rank[given.name]

    def _judge(self, given: Input, rows: Rows) -> int:
        """Drop rows that are very late or refused, and move the watermark past the others.

        Returns the last crossing of an interval, a position in the batch: -1 when there is none or
        no trigger needs it.
        """
        time_field = self._time_field
        if time_field is None:
            return -1
        lent = rows.columns.lent(time_field)
        if lent is not None and self._fold.interval_ns is None:
            after_ns = watermark.if_on_time(
                lent,
                given.watermark_ns,
                given.out_of_order_ns,
                self._near_ns,
            )
            if after_ns is not None:
                rows.times_ns, given.watermark_ns = lent, after_ns
                return -1
        times: Ints | Lent | None = lent
        if times is None:
            times = numbers(rows.columns[time_field], Kind.INT).values
        rows.times_ns = times
        crossing = -1
        if self._fold.interval_ns is not None:
            crossing = watermark.last_crossing(
                times,
                given.watermark_ns,
                given.out_of_order_ns,
                given.future_ns_max,
                self._watermark_of_others(given),
                self._fold.interval_ns,
            )
            if crossing >= 0 and rows.origin is not None:
                crossing = int(rows.origin[crossing])
        verdicts, late, very_late, future, refused = given.judge(
            times, self._lateness_ns, self._future_ns
        )
        if verdicts is None:
            return crossing
        self.counters.mildly_late += late
        self.counters.very_late += very_late
        self.counters.future += future
        if refused:
            beyond = reject_beyond(rows, verdicts, self.plan.source)
            verdicts = np.delete(verdicts, beyond)
        if very_late:
            rows.keep(verdicts != watermark.VERY_LATE)
        return crossing

    def _input(self, name: str) -> Input:
        given = self._inputs.get(name) if isinstance(name, str) else None
        if given is None:
            raise InputError(f"no input {shown(name)} was declared: they are {list(self._inputs)}")
        return given

    def _watermark_of_others(self, given: Input) -> int:
        others = [one.watermark_ns for one in self._inputs.values() if one is not given]
        return min(others, default=watermark.END)

    # --- what other partitions have ---

    # --- how far inputs were read ---

    @property
    def cut(self) -> dict[str, int]:
        """Per input, the next offset to read."""
        only = self._only_in_cut
        if only is not None:
            return {only.name: only.next_offset}
        cut = {}
        for name, given in self._inputs.items():  # a comprehension is a call
            cut[name] = given.next_offset
        if self._markers is None and self._answers is None:
            return cut
        return cut | {log.name: log.next_offset for log in self._logs}

    @property
    def _logs(self) -> Sequence[Input]:
        """The logs of markers and of answers."""
        return [log for log in (self._markers, self._answers) if log is not None]

    @property
    def watermark_ns(self) -> int:
        """The merged watermark: the minimum over all declared inputs."""
        if self._only is not None:
            return self._only.watermark_ns
        least_ns = watermark.END
        for given in self._inputs.values():
            least_ns = min(least_ns, given.watermark_ns)
        return least_ns

    @property
    def watermarks_ns(self) -> dict[str, int]:
        """The watermark of each input."""
        return {name: given.watermark_ns for name, given in self._inputs.items()}

    def _position(self) -> Position:
        return {"cut": self.cut, "watermarks_ns": self.watermarks_ns, "epochs": {}}

    def _resume(self, snapshot: Snapshot) -> None:
        for name, given in self._inputs.items():
            given.next_offset = snapshot.cut[name]
            given.watermark_ns = snapshot.watermarks_ns[name]
        for log in self._logs:
            log.next_offset = snapshot.cut[log.name]


def known_keys(fold: EventFold, source: SourceSpec) -> int:
    """Return how many keys need no look at their partition any more.

    None of a table's: the newest record of a key is told by offsets, which another input has too.
    """
    return len(fold.keys.index) if source.table is None else 0


def reject_beyond(rows: Rows, verdicts: npt.NDArray[np.uint8], source: SourceSpec) -> list[int]:
    """Reject rows with impossible times, and return their mask."""
    why = {
        watermark.OUT_OF_RANGE: "outside [-2^62, 2^62) ns",
        watermark.TOO_FAR: "too far ahead",
    }
    beyond = {
        row: f"the event time {source.time_field!r} is {why[verdict]}"
        for row, verdict in enumerate(verdicts.tolist())
        if verdict in why
    }
    rows.reject(beyond, source.name)
    return list(beyond)


def _check_plan(plan: object) -> None:
    if not isinstance(plan, Plan):
        raise PlanError(f"Engine: plan must be what pipeline.plan() returns, not {shown(plan)}")


def names_of(plan: Plan, inputs: Sequence[str] | None, start: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of an engine's inputs with events, from the engine's arguments.

    Raises PlanError and InputError.
    """
    _check_plan(plan)
    if inputs is not None and not (
        isinstance(inputs, (list, tuple)) and all(isinstance(name, str) for name in inputs)
    ):
        raise InputError(f"Engine: inputs must be a list of names, not {shown(inputs)}")
    if not isinstance(start, Mapping):
        raise InputError(f"Engine: start must be offsets by input, not {shown(start)}")
    names = tuple(inputs if inputs is not None else (source.name for source in plan.sources))
    if not names or len(set(names)) < len(names):
        raise InputError(f"an engine needs distinct inputs, not {names!r}")
    unknown = [name for name in start if name not in names]
    if unknown:
        raise InputError(f"a start is given for {unknown}, but the inputs are {names!r}")
    return of_sources(names)


def _log_in(
    plan: Plan,
    inputs: Sequence[str] | None,
    start: Mapping[str, int],
    is_one: Callable[[str], bool],
) -> Input | None:
    """Return the log of a kind among the inputs of an engine, None without one."""
    name = next(filter(is_one, inputs or ()), None)
    if name is None:
        return None
    return Input.of(plan.sources[0], name, start.get(name, 0), watermark.END)
