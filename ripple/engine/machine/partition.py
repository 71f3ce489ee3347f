"""One partition of a pipeline, or of one of its stages, above its leaf."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict

import numpy as np
import pyarrow as pa

from ripple.core.arguments import need_bool, need_whole, shown
from ripple.core.errors import InputError, NodeError
from ripple.core.hashing import mix_of
from ripple.engine.edges.kinds import edges_from
from ripple.engine.edges.newest_rows import NewestRows
from ripple.engine.edges.outgoing import Outgoing
from ripple.engine.kernels.view import View
from ripple.engine.machine.changes import Changes, Shown
from ripple.engine.machine.counters import Counters
from ripple.engine.machine.inspection import inspected
from ripple.engine.machine.sending import Sending, SendingTo, checked
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.event_fold import EventFold
from ripple.engine.operators.stream_rows import StreamRows
from ripple.engine.operators.table_fold import TableFold
from ripple.engine.operators.uncomputable import Uncomputable, UncomputableRows, first_rows
from ripple.engine.snapshots.saving import PendingSnapshot, SavedTable
from ripple.engine.snapshots.snapshot import (
    REJECTED,
    Snapshot,
    SnapshotError,
    out_of_order_counter,
    uncomputable_counter,
)
from ripple.model.pipeline.input_names import is_answers, of_sources
from ripple.model.pipeline.nodes import RowTable, TableJoin, tables_below
from ripple.model.pipeline.topology import stages_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.engine.machine.event_stream import EventStream
    from ripple.engine.machine.output_stream import OutputStream
    from ripple.engine.operators.groups import Groups
    from ripple.engine.operators.join_state import JoinState
    from ripple.engine.operators.joins.table_join_rows import TableJoinRows
    from ripple.engine.operators.version_order import VersionOrder
    from ripple.engine.operators.waiting import Waiting
    from ripple.engine.snapshots.ledger import Ledger
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.exported import Made, Part
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]


_ALL = 1 << 62  # slots


class Leaf(Protocol):
    """The lowest keyed view of a partition, fed by events or by other partitions."""

    fold: Fold
    uncomputable: UncomputableRows
    ledger: Ledger
    frees: bool
    """Whether rows may be final now, or slots wait to be freed."""

    @property
    def column(self) -> Column:
        """Its rows."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its rows without the key."""

    def settle(self, watermark_ns: int) -> None:
        """Update the shown rows by the changes taken and the watermark."""

    def expired(self) -> Ints:
        """Return the slots of rows that are final, once; their last change was reported."""

    def free(self, expired: Ints) -> None:
        """Free these slots, and others that are not needed any more."""

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Load its state from a snapshot, as it was at that watermark."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


class Position(TypedDict):
    """A snapshot's state of a partition's inputs."""

    cut: dict[str, int]
    watermarks_ns: dict[str, int]
    epochs: dict[str, int]
    ends_ns: NotRequired[dict[str, int]]


def _table_of(
    graph: Graph, plan: Plan, fold: Fold, below: Sequence[Column]
) -> TableFold | TableJoinRows:
    """Return the rows of a fold, or of a join, over the tables below it."""
    if isinstance(fold, TableJoin):
        # Few plans have joins.
        from ripple.engine.operators.joins.table_joins import table_join_rows  # noqa: PLC0415

        left, right = below
        stays = not plan.frees(plan.fold(fold.input)), not plan.frees(plan.fold(fold.right))
        is_side = any(fold.name in (one.input, one.right) for one in plan.table_joins)
        return table_join_rows(graph, fold, left, right, stays=stays, is_side=is_side)
    return TableFold(graph, fold, below[0])


def _in_order(leaf: Leaf) -> bool:
    """Whether the rows of a leaf are touched in an order that no batch decides."""
    return leaf.fold.timing is None and not isinstance(leaf.fold, RowTable)


class Partition(Sending):
    """Leaves, the folds above them, their views, and the changes for the stages that follow.

    State, counters and outputs are a function of the cut. No I/O, no clock.
    """

    waiting: Mapping[str, Waiting] = MappingProxyType({})
    """The nodes that give rows by the watermark, by their names."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        graph: Graph,
        leaves: Sequence[Leaf],
        above: Sequence[Fold],
        *,
        stage: int | None,
        retractions: bool,
        finals: bool,
        in_order: bool,
        streams: Mapping[str, StreamRows] = MappingProxyType({}),
    ) -> None:
        """Make an empty partition of ``leaves`` and the folds ``above`` them.

        in_order: whether the rows of a leaf without windows are touched in an order that is a
        function of the cut. streams: the rows of streams that are shown, by node.
        """
        need_bool("Engine: retractions", retractions, InputError)
        need_bool("Engine: finals", finals, InputError)
        self.plan = plan
        self.partition = need_whole("Engine: partition", partition, 0, InputError)
        self.stage = stage
        self.counters = Counters()
        self.graph = graph
        self._leaves = tuple(leaves)
        self._reported = True
        self._broken = False
        self._computes_groups = False  # where a snapshot has none of them
        self._snapshots = 0
        self._shown: dict[str, int] = {}  # rows of windowed leaves, as of the last stabilize
        self.last_retractions = 0
        """Rows of windows that were shown before and were corrected, or withdrawn, by the last
        stabilize."""
        self._finals = finals
        self._table_folds: list[TableFold | TableJoinRows] = []
        columns: dict[str, tuple[Column, tuple[Field, ...]]] = {
            leaf.fold.name: (leaf.column, leaf.fields) for leaf in leaves
        }
        ordered = {leaf.fold.name for leaf in leaves if in_order and _in_order(leaf)}
        for fold in above:
            below = _table_of(graph, plan, fold, [columns[name][0] for name in tables_below(fold)])
            self._table_folds.append(below)
            columns[fold.name] = (below, below.result_rows.fields)
        # The rows of the leaf may be copies of others', who show them.
        folds = columns if stage is None else stages_of(plan)[stage].folds
        made_here = (*folds, *streams)
        self._outputs = [output for output in plan.outputs if output.of in made_here]
        self._names_of: dict[str, list[str]] = {}
        for output in self._outputs:
            self._names_of.setdefault(output.of, []).append(output.name)
        self._views: dict[str, View | StreamRows] = {}
        for name in self._names_of:
            if name in streams:
                self._views[name] = streams[name]
                continue
            column, fields = columns[name]
            types, is_ordered = (
                (arrow_fields(column.keys.fields), arrow_fields(fields)),
                name in ordered,
            )
            self._views[name] = View(column, types, retractions=retractions, in_order=is_ordered)
        self._taking = [(view, self._names_of[of]) for of, view in self._views.items()]
        self._retracts = retractions
        self._none_retracted = MappingProxyType(self._take_retracted())
        edges = () if stage is None else edges_from(plan, stage)
        self._outgoing = {
            edge.stage.number: Outgoing(edge, graph, columns[edge.above.name][0]) for edge in edges
        }
        self._showings: dict[tuple[str, bool], OutputStream] = {}
        self._newest: dict[StreamRows, NewestRows] = {}
        self._events: dict[str, EventStream] = {}
        self._columns = {name: column for name, (column, _) in columns.items()}
        self._folds: list[Leaf | TableFold | TableJoinRows] = [*leaves, *self._table_folds]
        # In the order of freeing, each fold with the tables among its inputs.
        self._freeing = [
            (fold, [name for name in tables_below(fold.fold) if name in columns])
            for fold in self._folds
        ]
        self._frees = finals or bool(self._outgoing)  # in each stabilize
        self._correcting = [
            (leaf, self._names_of[leaf.fold.name][0])
            for leaf in leaves
            if leaf.fold.window is not None and leaf.fold.name in self._views
        ]

    def _refuse(self) -> None:
        raise NodeError(
            "an earlier call failed halfway, so the state is of no cut: restore a snapshot"
        )

    # --- changes ---

    def stabilize(self) -> Changes:
        """Stabilize the views at the cut; return the changes since the last call.

        Rows that cannot be computed are absent, see ``uncomputable``. After any error (a user's
        aggregate that cannot add, remove or merge) the engine takes no more.
        """
        if self._broken:
            self._refuse()
        self._broken = True
        watermark_ns = self.watermark_ns
        if self._correcting and not self._shown:
            self._note_shown()
        frees = self._settle(watermark_ns) or self._frees
        self.graph.stabilize()
        taken: dict[str, Made | Part] = {}
        for view, names in self._taking:
            rows = view.take()
            for name in names:
                taken[name] = rows
        if self._newest:
            self._keep_newest()
        gone = self._take_retracted() if self._retracts else self._none_retracted
        if self._correcting:
            self._count_retractions(taken)
        for fold in self._table_folds:
            frees = frees or bool(fold.left_empty)
        final = self._finish(taken, frees=frees) if frees or self._showings else {}
        self._broken = False
        self._reported = True
        return Changes(Shown(taken), self.cut, watermark_ns, gone, final)

    def _keep_newest(self) -> None:
        for stream, newest in self._newest.items():
            if (came := stream.take_identified()) is not None:
                newest.add(came, self.cut)

    def _settle(self, watermark_ns: int) -> bool:
        """Let the leaves show their due rows at a watermark; return whether one frees some."""
        frees = False
        for leaf in self._leaves:
            leaf.settle(watermark_ns)
            if leaf.frees:
                frees = True
        return frees

    def _watermark_of(self, leaf: Leaf) -> int:
        """Return the merged watermark of a leaf's inputs."""
        del leaf
        return self.watermark_ns

    def watermark_under(self, fold: str) -> int:
        """Return the merged watermark of the inputs of a fold."""
        del fold
        return self.watermark_ns

    def _take_retracted(self) -> dict[str, pa.RecordBatch]:
        gone: dict[str, pa.RecordBatch] = {}
        for view, names in self._taking:
            gone |= dict.fromkeys(names, view.take_retracted())
        return gone

    def _finish(
        self, taken: Mapping[str, Made | Part], *, frees: bool
    ) -> dict[str, pa.RecordBatch]:
        """Free final rows and note them for subscribers; return them by output, if asked."""
        followed = [one for one in self._showings.items() if one[1].keeps]
        final = self._free_expired(names=self._finals or bool(followed)) if frees else {}
        final = {one.name: final[one.of] for one in self._outputs if one.of in final}
        for (name, _), showing in followed:
            showing.add(taken[name].arrow(), final.get(name))
        return final if self._finals else {}

    def _count_retractions(self, taken: Mapping[str, Made | Part]) -> None:
        """Count changes that are neither the first row of a window nor its withdrawal alone."""
        self.last_retractions = 0
        for leaf, output in self._correcting:
            if rows := taken[output].num_rows:
                fold, shown = leaf.fold.name, len(leaf.column)
                self.last_retractions += (
                    rows + self._shown[fold] - shown - self._views[fold].removed
                )
                self._shown[fold] = shown

    def _note_shown(self) -> None:
        for leaf, _ in self._correcting:
            self._shown[leaf.fold.name] = len(leaf.column)

    def _free_expired(self, *, names: bool) -> dict[str, pa.RecordBatch]:
        """Free final rows after their changes were taken: a fold's rows before its inputs'.

        So keys that a join shares with its left side are there as long as its rows are. Returns
        final rows by fold, if ``names``.
        """
        final: dict[str, pa.RecordBatch] = {}
        retired: dict[str, Ints] = {}
        for fold, inputs in self._freeing:
            name = fold.fold.name
            below = [retired[one] for one in inputs]
            expired = fold.expired(*below) if not below or any(map(len, below)) else below[0]
            view = self._views.get(name)
            if isinstance(view, View) and names:
                final[name] = view.rows(expired[self._columns[name].has_rows(expired)])
            if len(expired):
                self._finalize(name, expired)
            for outgoing in self._outgoing.values():
                if outgoing.of == name:
                    outgoing.retire(expired)
            retired[name] = expired
        for fold in reversed(self._folds):
            fold.free(retired[fold.fold.name])
        self._note_shown()
        return final

    def _finalize(self, name: str, slots: Ints) -> None:
        view = self._views.get(name)
        if isinstance(view, View):
            view.finalize(slots)
        for rows in self._unfolded(name):
            rows.finalize(slots)

    def _unfolded(self, name: str) -> list[UncomputableRows]:
        """Return the records of a fold's rows that the folds above it cannot take in."""
        folds = [fold for fold in self._table_folds if isinstance(fold, TableFold)]
        above = [*folds, *self._groups_for_others()]
        return [fold.unfolded for fold in above if fold.fold.input == name]

    def _groups_for_others(self) -> list[Groups]:
        """Return the groups kept for folds of other stages."""
        return [one.groups for one in self._outgoing.values() if one.groups is not None]

    # --- changes for other stages ---

    def sending(self, stage: int) -> Sending:
        """Return the partition's outgoing edge to one of the next stages."""
        return SendingTo(self, self._outgoing[stage])

    def _sender(self, *targets: int) -> Outgoing:
        (outgoing, *more) = self._outgoing.values() or (None,)
        if more:
            raise InputError(f"the stages {list(self._outgoing)} follow this one: say which")
        return checked(outgoing, targets)

    # --- changes for external subscribers ---

    def showing(self, output: str, *, uncommitted: bool = False) -> OutputStream:
        """Return the stream of an output for external subscribers; empty until they ask.

        uncommitted: its subscribers take other cuts than subscribers to commits.
        """
        key = output, uncommitted
        if key not in self._showings:
            # Here, since most partitions are not followed, and it takes its time.
            from ripple.engine.machine.output_stream import OutputStream  # noqa: PLC0415

            view = self._view_of(output)
            assert isinstance(view, View), "of events there is showing_events"
            self._showings[key] = OutputStream(self, view)
        return self._showings[key]

    def keep_newest(self, output: str, rows_max: int, bytes_max: int) -> None:
        """Keep the newest rows of an output of events from now on; called right after a stabilize.

        They are not part of the state: a restored partition has the rows read since the restore.
        """
        view = self._view_of(output)
        assert isinstance(view, StreamRows), "of a fold there is the table"
        if view not in self._newest:
            schema = view.identify()
            self._newest[view] = NewestRows(schema, self.cut, rows_max, bytes_max)

    def showing_events(self, output: str) -> EventStream:
        """Return the stream of an output of events for external subscribers; see keep_newest."""
        from ripple.engine.machine.event_stream import EventStream  # noqa: PLC0415 - as above

        view = self._view_of(output)
        assert isinstance(view, StreamRows), "of a fold there is showing"
        if output not in self._events:
            self._events[output] = EventStream(self, self._newest[view])
        return self._events[output]

    # --- cut and tables ---

    @property
    def is_stable(self) -> bool:
        """Whether ``stabilize`` was called after the last change."""
        return self._reported

    @property
    def watermarks_ns(self) -> dict[str, int] | None:
        """The watermark of each input; None where other partitions feed it."""
        return None

    @abstractmethod
    def _position(self) -> Position:
        """Return the state of its inputs for a snapshot."""

    @abstractmethod
    def _resume(self, snapshot: Snapshot) -> None:
        """Load the state of its inputs from a snapshot."""

    @property
    def counters_by_source(self) -> Mapping[str, Counters]:
        """The counts of each source's records: none where other partitions feed it."""
        return {}

    @property
    def digests(self) -> dict[str, str]:
        """Per output, 16 hexadecimal digits that are equal for equal tables, final rows too."""
        return {output.name: f"{self._views[output.of].digest:016x}" for output in self._outputs}

    @property
    def live_digests(self) -> dict[str, str]:
        """Per output, the digest of its rows that may still change: those of ``table``."""
        views = {output.name: self._views[output.of] for output in self._outputs}
        return {
            name: f"{(view.digest - view.final_digest) % (1 << 64):016x}"
            for name, view in views.items()
        }

    @property
    def digest(self) -> str:
        """One digest of all outputs, as of the last stabilize."""
        whole = 0
        for output in self._outputs:
            whole = mix_of(whole, self._views[output.of].digest)
        return f"{whole:016x}"

    def table(self, output: str) -> pa.Table:
        """Return an output's rows in memory; rows that became final are not among them."""
        return self._view_of(output).table()

    def _view_of(self, output: str) -> View | StreamRows:
        of = {one.name: one.of for one in self._outputs}
        if not isinstance(output, str) or output not in of:
            raise InputError(f"no output {shown(output)}: they are {list(of)}")
        return self._views[of[output]]

    def rows_shown(self, stream: str) -> int:
        """Return how many rows of a stream outputs have shown since the partition was restored."""
        view = self._views[stream]
        assert isinstance(view, StreamRows)
        return view.count

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

    @property
    def asked_counts(self) -> dict[str, int]:
        """How many rows wait for the answers of each ask."""
        return {}

    def answered(self, cut: Mapping[str, int]) -> tuple[int, int] | None:
        """Return the offsets of sources before a cut, and the answers, if no row waits.

        None without asks, and at another cut.
        """
        if cut != self.cut or not self.asked_counts or any(self.asked_counts.values()):
            return None
        answers = sum(offset for name, offset in cut.items() if is_answers(name))
        return sum(cut[name] for name in of_sources(cut)), answers

    @property
    def uncomputable_counts(self) -> dict[str, int]:
        """How many rows of each fold cannot be computed at the cut: none of most."""
        return {name: sum(map(len, parts)) for name, parts in self._uncomputable().items()}

    @property
    def versions_out_of_order(self) -> dict[str, int]:
        """How many records of each table have an earlier time than the row of their key then.

        So the newest version of a key may not be its row. Only of tables with event times.
        """
        return {self.plan.fold(name).input: of.count for name, of in self._versions()}

    def _versions(self) -> Iterator[tuple[str, VersionOrder]]:
        for leaf in self._leaves:
            if isinstance(leaf, EventFold) and leaf.versions is not None:
                yield leaf.fold.name, leaf.versions

    @property
    def join_states(self) -> dict[str, JoinState]:
        """Where each join is."""
        joins = (one for one in self._table_folds if not isinstance(one, TableFold))
        return {one.fold.name: one.state for one in joins}

    @property
    def keys_held(self) -> int:
        """Keys, of each window that is held, in the fold that holds the most."""
        sizes = (len(self._columns[fold.fold.name].keys.index) for fold in self._folds)
        return max(sizes, default=0)

    def _uncomputable(self) -> dict[str, list[UncomputableRows]]:
        return {
            fold.fold.name: [fold.uncomputable, *self._unfolded(fold.fold.name)]
            for fold in self._folds
        }

    def open_keys(self, fold: str) -> pa.Table:
        """Return the keys of a row table's rows that are not final, shown or not; see EagerRows."""
        from ripple.engine.operators.joins.eager_rows import EagerRows  # noqa: PLC0415 - seldom

        leaf = next(leaf for leaf in self._leaves if leaf.fold.name == fold)
        assert isinstance(leaf, EagerRows), "only of row tables"
        return leaf.open_keys()

    @property
    def windows(self) -> int:
        """Windows that are held: until their end and the lateness that is allowed."""
        return sum(
            len(leaf.column.keys.index) for leaf in self._leaves if leaf.fold.window is not None
        )

    @property
    def waiting_count(self) -> int:
        """The state held until a watermark has passed it: windows, and keys that end."""
        timed = (leaf for leaf in self._leaves if leaf.fold.timing is not None)
        return sum(len(leaf.column.keys.index) for leaf in timed)

    @property
    def nbytes(self) -> int:
        """Bytes held by keys, state and rows."""
        return sum(fold.nbytes for fold in self._folds)

    def inspected_folds(self) -> list[tuple[Fold, Column, int]]:
        """Return each fold, the first one first, with its rows and the bytes that it holds."""
        folds = [fold.fold for fold in self._folds]
        return [
            (f, self._columns[f.name], one.nbytes)
            for f, one in zip(folds, self._folds, strict=True)
        ]

    def inspected(self) -> dict[str, Any]:
        """Return the state of its graph: see ``ripple.engine.machine.inspection``."""
        return inspected(self)

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
        """Begin a snapshot of the current cut; intake may continue while it is made in steps.

        State is copied before events change it, so that every step has the state of the cut. Copied
        at once are the numbers of the slots, when windows end, and how far partial results are. A
        snapshot begun before and not yet complete must not be used any more.

        since: the number of a snapshot of this engine that is stored; this one then holds only the
        changes after it, if the engine knows that: not when one of everything was begun later. The
        changes since a stored snapshot are not forgotten before one that is built on a later one,
        or one of everything, is begun; so nothing is lost if this one cannot be stored.
        """
        if not self._reported:
            raise SnapshotError(
                "stabilize before a snapshot: there are changes that no stabilize has shown"
            )
        stateful: list[Leaf | Groups | TableJoinRows] = [*self._folds, *self._groups_for_others()]
        whole = self._whole()
        if whole or not all(one.ledger.can_tell_since(since) for one in stateful):
            since = None
        self._snapshots += 1
        savings = {one.fold.node_key: one.ledger.begin(self._snapshots, since) for one in stateful}
        final = {
            uncomputable_counter(name): sum(part.final for part in parts)
            for name, parts in self._uncomputable().items()
        }
        rest = Snapshot(
            pipeline=self.plan.name,
            topology_hash=self.plan.topology_hash,
            partition=self.partition,
            counters={
                **self._counted(),
                **{name: count for name, count in final.items() if count},
                **{
                    out_of_order_counter(name): of.count
                    for name, of in self._versions()
                    if of.count
                },
                **self._rejected_counters(),
            },
            digests={name: (v.digest, v.final_digest) for name, v in self._views.items()},
            tables={},
            nodes=self.plan.node_keys,
            notes=self.plan.notes,
            stage=self.stage,
            **self._position(),
            retained={
                stage: rows
                for stage, one in self._outgoing.items()
                if (rows := one.retained()) is not None
            },
            number=self._snapshots,
            since=since,
        )
        return PendingSnapshot(rest, {**savings, **whole})

    def _whole(self) -> dict[str, SavedTable]:
        """Begin to dump the state without slots, and so without increments; most have none."""
        return {}

    def _rejected_counters(self) -> Mapping[str, int]:
        """Return the count of each node's rejected records, by ``REJECTED`` and its digest."""
        return {}

    def _load(self, snapshot: Snapshot, freed_digests: Mapping[str, int]) -> None:
        if snapshot.since is not None:
            raise SnapshotError(
                f"the snapshot at {dict(snapshot.cut)} holds only what changed since another one: "
                "apply it to that one first"
            )
        self._resume(snapshot)
        counts = {n: count for n, count in snapshot.counters.items() if not n.startswith(REJECTED)}
        for fold in self._folds:
            fold.uncomputable.final = counts.pop(uncomputable_counter(fold.fold.name), 0)
        for name, versions in self._versions():
            versions.count = counts.pop(out_of_order_counter(name), 0)
        self._count_on(counts)
        self._load_state(snapshot)
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

    def _counted(self) -> dict[str, int]:
        """Return the counts of events for a snapshot."""
        return self.counters.as_dict()

    def _count_on(self, counts: dict[str, int]) -> None:
        """Take over the counts of events of a snapshot."""
        self.counters = Counters(**counts)

    def _load_state(self, snapshot: Snapshot) -> None:
        """Take over leaf state, from the first fold to the last, and compute the rest."""
        for leaf in self._leaves:
            leaf.load(snapshot.tables[leaf.fold.node_key], self._watermark_of(leaf))
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
        for stage, outgoing in self._outgoing.items():
            partial = outgoing.groups
            if partial is not None:
                table = snapshot.tables.get(partial.fold.node_key)
                if table is None and not self._computes_groups:
                    raise SnapshotError(
                        f"the snapshot has nothing for the next stage's fold {partial.fold.name!r}:"
                        " its rows went there through a log (via='log')"
                    )
                if table is not None:
                    partial.load(table)
                    self.graph.stabilize()
            outgoing.resume(snapshot.retained.get(stage), self.cut)
