"""The partition state machine: events in, changes out, a function of the consumed prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.arguments import need_bool, need_whole, shown
from ripple.engine.admission import Admission
from ripple.engine.arrow_types import arrow_fields, conformed
from ripple.engine.counters import Counters
from ripple.engine.event_fold import EventFold
from ripple.engine.fitting import digests_to_make, in_present_keys
from ripple.engine.inputs import Input
from ripple.engine.rows import RejectedRow, Rows
from ripple.engine.saving import PendingSnapshot
from ripple.engine.snapshot import Snapshot, SnapshotError, uncomputable_counter
from ripple.engine.table_fold import TableFold
from ripple.engine.uncomputable import Uncomputable, UncomputableRows, first_rows
from ripple.engine.windowed_fold import WindowedFold
from ripple.errors import InputError, NodeError, PlanError, SchemaError
from ripple.expression.bound import numbers
from ripple.expression.typed import Kind
from ripple.fold.view import View
from ripple.graph.column import Column
from ripple.hashing import mix_of
from ripple.notebook.graph import Graph
from ripple.pipeline.plan import Plan
from ripple.window import duration_ns, watermark
from ripple.window.spec import FUTURE_TOLERANCE_DEFAULT

if TYPE_CHECKING:
    from ripple.schema.types import Field

Ints = npt.NDArray[np.int64]

_ALL = 1 << 62  # slots


@dataclass(frozen=True, slots=True)
class Changes:
    """All deltas between two cuts.

    outputs: per output of the plan, a record batch with ``op`` (int8: Set 0, Remove 2), the key,
    and the values, null in a Remove; at most one row per key. Their order is a function of the
    state at the last cut and of this one: a fold over events of one input, without windows, has
    that of the events; all others go by window start, if the key has one, and a hash of the key.
    cut: per input, the next offset to read: what the outputs have reached. watermark_ns: the merged
    watermark, or watermark.NONE. retractions: per output, the rows that were shown and changed, as
    they were, for consumers that withdraw before they correct; only if the engine was asked for
    them.
    """

    outputs: Mapping[str, pa.RecordBatch]
    cut: Mapping[str, int]
    watermark_ns: int
    retractions: Mapping[str, pa.RecordBatch] = field(default_factory=dict)


class Engine:
    """One partition of a pipeline.

    State, counters and outputs are a function of which inputs were consumed (the cut): never of
    batch sizes, of how inputs interleave, of time or of restarts. No I/O, no clock. The one
    exception: with several inputs, what OnInterval and OnCount show of a window *before its end*
    also depends on the order in which the inputs were read; from its end on it does not.
    """

    def __init__(
        self,
        plan: Plan,
        partition: int = 0,
        inputs: Sequence[str] | None = None,
        *,
        start: Mapping[str, int] = MappingProxyType({}),
        retractions: bool = False,
    ) -> None:
        """Make an empty partition.

        inputs: the names of all input partitions that will ever feed it, the plan's source by
        default. The watermark waits for every one of them. start: the first offset to read of
        inputs that do not begin at 0. retractions: let ``stabilize`` also return changed rows as
        they were.
        """
        _check_arguments(plan, inputs, start)
        need_bool("Engine: retractions", retractions, InputError)
        names = tuple(inputs) if inputs is not None else (plan.source.name,)
        if not names or len(set(names)) < len(names):
            raise InputError(f"an engine needs distinct inputs, not {names!r}")
        unknown = [name for name in start if name not in names]
        if unknown:
            raise InputError(f"a start is given for {unknown}, but the inputs are {names!r}")
        self.plan = plan
        self.partition = need_whole("Engine: partition", partition, 0, InputError)
        self.counters = Counters()
        self.graph = Graph()
        late_ns, ahead_ns = plan.source.out_of_order_ns, plan.source.reject_future_ns
        ahead_ns = watermark.ANY_FUTURE_NS if ahead_ns is None else ahead_ns
        # Room to tell in 64 bits which input an offset is of.
        offset_max = watermark.END // len(names)
        self._inputs = {
            name: Input(name, late_ns, ahead_ns, start.get(name, 0), offset_max=offset_max)
            for name in names
        }
        self._rank = {name: rank for rank, name in enumerate(names)}
        self._schema = pa.schema(arrow_fields(plan.source.fields))
        self._accepted = self._schema
        self._admission = Admission(plan.source)
        self._reported = True
        self._broken = False
        self._snapshots = 0
        self._build_folds(retractions=retractions)

    @classmethod
    def restore(cls, plan: Plan, snapshot: Snapshot, *, retractions: bool = False) -> Engine:
        """Return the partition as it was at the snapshot's cut.

        The plan may have other sinks than the one that made the snapshot. retractions: as for a
        new engine. Raises SnapshotError when a fold, a step on its results or the events are other
        ones, or when digests do not match.
        """
        _check_plan(plan)
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(f"Engine: snapshot must be a Snapshot, not {shown(snapshot)}")
        snapshot = in_present_keys(plan, snapshot)
        engine = cls(plan, snapshot.partition, tuple(snapshot.cut), retractions=retractions)
        engine._load(snapshot, digests_to_make(plan, snapshot))
        return engine

    @classmethod
    def adopt(cls, plan: Plan, snapshot: Snapshot, freed_digests: Mapping[str, int]) -> Engine:
        """Return the partition with state that another plan has left and that was made to fit.

        Unlike with ``restore``, a fold over results may lack its table, and is computed from the
        rows below it; freed_digests: of each shown fold whose digest is to be taken afresh, the
        digest of its rows that were freed before, 0 where none were. Raises SnapshotError when
        other digests do not match or rows that would be needed were freed.
        """
        engine = cls(plan, snapshot.partition, tuple(snapshot.cut))
        engine._load(snapshot, freed_digests)
        return engine

    def _build_folds(self, *, retractions: bool) -> None:
        first, *others = self.plan.folds
        # Whether somebody asks where in the log an event is.
        self._orders = any(one.aggregate.ordered for one in first.aggregates)
        kind = EventFold if first.window is None else WindowedFold
        self._fold = kind(self.graph, first)
        self._table_folds: list[TableFold] = []
        columns: dict[str, tuple[Column, tuple[Field, ...]]] = {
            first.name: (self._fold.column, self._fold.result_rows.fields)
        }
        for fold in others:
            below = TableFold(self.graph, fold, columns[fold.input][0])
            self._table_folds.append(below)
            columns[fold.name] = (below, below.result_rows.fields)
        self._folds: list[EventFold | TableFold] = [self._fold, *self._table_folds]
        shown = dict.fromkeys(output.of for output in self.plan.outputs)
        window = first.window
        self._views: dict[str, View] = {}
        for name in shown:
            column, fields = columns[name]
            # Without windows and with one input, rows are touched by events, in their order.
            in_order = column is self._fold.column and window is None and len(self._inputs) == 1
            types = arrow_fields(column.keys.fields), arrow_fields(fields)
            self._views[name] = View(column, types, retractions=retractions, in_order=in_order)
        # Without windows nothing is too late: the result does not depend on when an event came.
        self._lateness_ns = window.lateness_ns if window else watermark.ANY_LATENESS_NS
        self._future_ns = window.future_ns if window else duration_ns(FUTURE_TOLERANCE_DEFAULT)

    # --- events ---

    def apply(
        self,
        source: str,
        batch: pa.RecordBatch,
        next_offset: int,
        offsets: Ints | None = None,
        rejected: int | None = None,
    ) -> list[RejectedRow]:
        """Consume a slice of one input's log.

        batch: rows with the fields of the plan's source, in offset order, following what was
        applied before. next_offset: the offset after them; what it exceeds the rows by, the source
        rejected itself: all, or as many as ``rejected`` says, and then the others are holes, which
        nobody counts. offsets: of the rows, int64[n], needed when there are such gaps. Returns
        the rows that could not be processed, for the dead letters; raises InputError when the
        batch does not fit, with nothing consumed. After any other error (a batch function or a
        user's aggregate that raised) the engine refuses to go on.
        """
        self._refuse_if_broken()
        batch = self._conforming(batch)
        given = self._input(source)
        if offsets is not None:
            given.check_offsets(offsets, next_offset, batch.num_rows)
        refused = given.advance_to(next_offset, batch.num_rows, rejected)
        if offsets is None and self._orders:
            offsets = np.arange(next_offset - batch.num_rows, next_offset)
        self.counters.consumed += batch.num_rows + refused
        self.counters.dead_lettered += refused
        self._reported = False
        self._broken = True
        failed = self._consume_all(given, batch, offsets)
        self._broken = False
        return failed

    def _consume_all(
        self, given: Input, batch: pa.RecordBatch, offsets: Ints | None
    ) -> list[RejectedRow]:
        if not self._fold.stepwise:
            return self._consume(given, batch, offsets)
        rejected: list[RejectedRow] = []
        for at in range(batch.num_rows):
            own = None if offsets is None else offsets[at : at + 1]
            alone = self._consume(given, batch.slice(at, 1), own)
            rejected.extend(RejectedRow(at, bad.step, bad.reason) for bad in alone)
            self._fold.settle(self.watermark_ns)
        return rejected

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise NodeError(
                "an earlier call failed halfway, so the state is of no cut: restore a snapshot"
            )

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

    def close(self) -> None:
        """Declare that no input goes on: every window ends."""
        for name, given in self._inputs.items():
            self.advance(name, watermark.END, given.next_offset)

    def _consume(
        self, given: Input, batch: pa.RecordBatch, offsets: Ints | None
    ) -> list[RejectedRow]:
        """Judge, transform and fold rows of one input."""
        columns = dict(zip(self._schema.names, batch.columns, strict=True))
        order = None
        if self._orders and offsets is not None:
            order = offsets * len(self._rank) + self._rank[given.name]
        rows = Rows(columns, batch.num_rows, offsets=order)
        self._admission.screen(rows)
        crossing = self._judge(given, rows)
        judged = rows.count + len(rows.rejected)
        rows.run(self.plan.steps)
        self._fold.admit(rows)
        if rows.count:
            self._fold.apply(rows, crossing)
        elif crossing >= 0:
            self._fold.show_waiting()
        self.counters.dead_lettered += len(rows.rejected)
        self.counters.applied += judged - len(rows.rejected)
        return rows.rejected

    def _judge(self, given: Input, rows: Rows) -> int:
        """Drop rows that are very late or refused, and move the watermark past the others.

        Returns the last crossing of an interval, a position in the batch: -1 when there is none or
        nobody asks.
        """
        time_field = self.plan.source.time_field
        if time_field is None:
            return -1
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
        self.counters.mildly_late += late
        self.counters.very_late += very_late
        self.counters.future += future
        if refused:
            why = {
                watermark.OUT_OF_RANGE: "outside [-2^62, 2^62) ns",
                watermark.TOO_FAR: "too far ahead",
            }
            beyond = {
                row: f"the event time {time_field!r} is {why[verdict]}"
                for row, verdict in enumerate(verdicts.tolist())
                if verdict in why
            }
            rows.reject(beyond, self.plan.source.name)
            verdicts = np.delete(verdicts, list(beyond))
        if very_late:
            rows.keep(verdicts != watermark.VERY_LATE)
        return crossing

    def _conforming(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with exactly the declared columns, cast where nothing is lost."""
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"source {self.plan.source.name!r}: apply takes a pyarrow.RecordBatch (a table has "
                f"them as .to_batches()), not {shown(batch)}"
            )
        if batch.schema.equals(self._accepted):
            return batch
        missing = [name for name in self._schema.names if name not in batch.schema.names]
        if missing:
            raise InputError(
                f"source {self.plan.source.name!r}: a batch lacks the fields {missing}; "
                f"it has {batch.schema.names}"
            )
        chosen = batch.select(self._schema.names)
        if chosen.schema.types == self._schema.types:
            self._accepted = chosen.schema  # nullability may differ from batch to batch
            return chosen
        try:
            return conformed(chosen, self.plan.source.fields)
        except SchemaError as error:
            raise InputError(
                f"source {self.plan.source.name!r}: a batch does not have the declared types: "
                f"{error}"
            ) from error

    def _input(self, name: str) -> Input:
        given = self._inputs.get(name) if isinstance(name, str) else None
        if given is None:
            raise InputError(f"no input {shown(name)} was declared: they are {list(self._inputs)}")
        return given

    def _watermark_of_others(self, given: Input) -> int:
        others = [one.watermark_ns for one in self._inputs.values() if one is not given]
        return min(others, default=watermark.END)

    # --- changes ---

    def stabilize(self) -> Changes:
        """Bring the views up to the cut; return what changed since the last call.

        Rows that cannot be computed are absent, see ``uncomputable``. After any error (a user's
        aggregate that cannot add, remove or merge) the engine refuses to go on.
        """
        self._refuse_if_broken()
        self._broken = True
        self._fold.settle(self.watermark_ns)
        self.graph.stabilize()
        taken = {name: view.take() for name, view in self._views.items()}
        gone = {name: view.take_retracted() for name, view in self._views.items()}
        self._free_expired()
        self._broken = False
        self._reported = True
        outputs = {output.name: taken[output.of] for output in self.plan.outputs}
        retracted = {output.name: gone[output.of] for output in self.plan.outputs}
        return Changes(outputs, self.cut, self.watermark_ns, retracted)

    def _free_expired(self) -> None:
        """Free what is final, from the first fold to the last, after its change was taken."""
        expired = self._fold.expired()
        self._finalize(self._fold.fold.name, expired)
        self._fold.free(expired)
        retired = {self._fold.fold.name: expired}
        for fold in self._table_folds:
            expired = fold.expired(retired[fold.fold.input])
            self._finalize(fold.fold.name, expired)
            fold.free(expired)
            retired[fold.fold.name] = expired

    def _finalize(self, name: str, slots: Ints) -> None:
        if not len(slots):
            return
        if name in self._views:
            self._views[name].finalize(slots)
        for fold in self._table_folds:
            if fold.fold.input == name:
                fold.unfolded.finalize(slots)

    # --- what it is a function of, and what it is ---

    @property
    def cut(self) -> dict[str, int]:
        """Per input, the next offset to read."""
        return {name: given.next_offset for name, given in self._inputs.items()}

    @property
    def watermark_ns(self) -> int:
        """The merged watermark: the minimum over all declared inputs."""
        return min(given.watermark_ns for given in self._inputs.values())

    @property
    def digests(self) -> dict[str, str]:
        """Per output, 16 hexadecimal digits that are equal for equal tables."""
        return {
            output.name: f"{self._views[output.of].digest:016x}" for output in self.plan.outputs
        }

    @property
    def digest(self) -> str:
        """One digest of all outputs, as of the last stabilize."""
        whole = 0
        for output in self.plan.outputs:
            whole = mix_of(whole, self._views[output.of].digest)
        return f"{whole:016x}"

    def table(self, output: str) -> pa.Table:
        """Return an output's rows in memory; rows that became final are not among them."""
        of = {one.name: one.of for one in self.plan.outputs}
        if not isinstance(output, str) or output not in of:
            raise InputError(f"no output {shown(output)}: they are {list(of)}")
        return self._views[of[output]].table()

    @property
    def uncomputable(self) -> Mapping[str, Uncomputable]:
        """Per fold, the rows that cannot be computed at the cut, as of the last stabilize.

        Only folds that have some. A row is counted under its own fold, also when it is there but
        the fold above cannot take it in. Counts are part of the state; of rows that are final,
        those are named that became so in this process.
        """
        found = {}
        for name, parts in self._uncomputable().items():
            rows = first_rows(row for part in parts for row in part.named())
            count, final = sum(map(len, parts)), sum(part.final for part in parts)
            if count:
                found[name] = Uncomputable(count, final, tuple(rows))
        return found

    def _uncomputable(self) -> dict[str, list[UncomputableRows]]:
        found = {fold.fold.name: [fold.uncomputable] for fold in self._folds}
        for fold in self._table_folds:
            found[fold.fold.input].append(fold.unfolded)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held by keys, state and rows."""
        return sum(fold.nbytes for fold in self._folds)

    def check_invariants(self) -> None:
        """Raise AssertionError when counters, graph or digests contradict themselves."""
        self.counters.check_invariants()
        self.graph.check_invariants()
        for name, view in self._views.items():
            live = (view.final_digest + view.live_digest()) % (1 << 64)
            assert not self._reported or view.digest == live, name

    # --- snapshots ---

    def snapshot(self) -> Snapshot:
        """Return the state at the current cut; to be called right after ``stabilize``.

        Raises SnapshotError when events were applied since: their changes were not reported, and
        a restored engine could not report them either.
        """
        pending = self.begin_snapshot()
        while not pending.step(_ALL):
            pass
        return pending.finish()

    def begin_snapshot(self, since: int | None = None) -> PendingSnapshot:
        """Begin a snapshot of the current cut; intake may go on while it is made in steps.

        What events are about to change is copied before, so that every step has the state of the
        cut. Here and now are copied the numbers of the slots, when windows end, and how far partial
        results are. A snapshot begun before and not yet complete must not be used any more.

        since: the number of a snapshot of this engine that is stored; this one then holds only
        what changed after it, if the engine can tell: not when one of everything was begun later.
        The changes since a stored snapshot are not forgotten before one that is built on a later
        one, or one of everything, is begun; so nothing is lost if this one cannot be stored.
        """
        if not self._reported:
            raise SnapshotError("stabilize before a snapshot: there are changes nobody has seen")
        if not all(fold.ledger.can_tell_since(since) for fold in self._folds):
            since = None
        self._snapshots += 1
        savings = {
            fold.fold.node_key: fold.ledger.begin(self._snapshots, since) for fold in self._folds
        }
        final = {
            uncomputable_counter(name): sum(part.final for part in parts)
            for name, parts in self._uncomputable().items()
        }
        rest = Snapshot(
            pipeline=self.plan.name,
            topology_hash=self.plan.topology_hash,
            partition=self.partition,
            cut=self.cut,
            watermarks_ns={name: one.watermark_ns for name, one in self._inputs.items()},
            counters=self.counters.as_dict() | {name: n for name, n in final.items() if n},
            digests={name: (v.digest, v.final_digest) for name, v in self._views.items()},
            tables={},
            nodes=self.plan.node_keys,
            notes=self.plan.notes,
            number=self._snapshots,
            since=since,
        )
        return PendingSnapshot(rest, savings)

    def _load(self, snapshot: Snapshot, freed_digests: Mapping[str, int]) -> None:
        if snapshot.since is not None:
            raise SnapshotError(
                f"the snapshot at {dict(snapshot.cut)} holds only what changed since another one: "
                "apply it to that one first"
            )
        for name, given in self._inputs.items():
            given.next_offset = snapshot.cut[name]
            given.watermark_ns = snapshot.watermarks_ns[name]
        counts = dict(snapshot.counters)
        for fold in self._folds:
            fold.uncomputable.final = counts.pop(uncomputable_counter(fold.fold.name), 0)
        self.counters = Counters(**counts)
        self._fold.load(snapshot.tables[self._fold.fold.node_key], self.watermark_ns)
        self.graph.stabilize()
        for fold in self._table_folds:
            table = snapshot.tables.get(fold.fold.node_key)
            if table is not None:
                fold.load(table)
                self.graph.stabilize()
            elif self.plan.frees(self.plan.fold(fold.fold.input)):
                raise SnapshotError(
                    f"the state of {fold.fold.name!r} is missing, and cannot be computed from rows "
                    "that were freed"
                )
        for name, view in self._views.items():
            view.take()
            view.take_retracted()
            live = view.live_digest()
            if name in freed_digests:
                view.final_digest = freed_digests[name]
                view.digest = (view.final_digest + live) % (1 << 64)
                continue
            view.digest, view.final_digest = snapshot.digests[name]
            if view.digest != (view.final_digest + live) % (1 << 64):
                raise SnapshotError(
                    f"the restored rows of {name!r} do not have the digest that the snapshot "
                    "recorded: it is damaged, or an aggregate is not deterministic"
                )


def _check_plan(plan: object) -> None:
    if not isinstance(plan, Plan):
        raise PlanError(f"Engine: plan must be what pipeline.plan() returns, not {shown(plan)}")


def _check_arguments(plan: object, inputs: object, start: object) -> None:
    _check_plan(plan)
    if inputs is not None and not (
        isinstance(inputs, (list, tuple)) and all(isinstance(name, str) for name in inputs)
    ):
        raise InputError(f"Engine: inputs must be a list of names, not {shown(inputs)}")
    if not isinstance(start, Mapping):
        raise InputError(f"Engine: start must be offsets by input, not {shown(start)}")
