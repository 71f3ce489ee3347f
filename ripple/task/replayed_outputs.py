"""The outputs of a task whose input is read again: muted up to the cut that they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from ripple.connectors.commit_group import KeyListingGroup, RereadGroup, SupersedingGroup
from ripple.connectors.contract import Commit
from ripple.core import cut as cuts
from ripple.core.errors import OutputError
from ripple.core.events import Diverged, EventListener
from ripple.core.row_ops import OP, OP_SET, with_named_ops
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.pipeline.node_keys import rebuild_word
from ripple.model.pipeline.nodes import RowTable, TableJoin
from ripple.task.lanes import is_lane
from ripple.task.outputs import Outputs
from ripple.task.resting import Resting, moved_over

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping
    from typing import Any

    from ripple.connectors.commit_group import CommitGroup, OutputStatus
    from ripple.core.cut import Cut
    from ripple.engine.machine import Changes
    from ripple.engine.machine.partition import Partition
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.exported import Made, Part
    from ripple.task.lanes import Lanes
    from ripple.task.published_rows import PublishedRows
    from ripple.task.read_ahead import ReadAhead


class ReplayedOutputs(Outputs):
    """Outputs that tell which cut they hold, and are given nothing before it.

    Invariant: an output is muted exactly until the engine has come to the cut that it holds; then
    the digest of its table must equal the one recorded there.
    """

    def __init__(
        self,
        group: CommitGroup,
        standings: Mapping[str, OutputStatus],
        start: Cut,
        guards: Callable[[str], bool],
        emit: EventListener,
        *,
        plan: Plan,
        lanes: Lanes | None = None,
        is_of_others: bool = False,
    ) -> None:
        """Take over the group's committed cuts. start: the cut of an empty output.

        is_of_others: whether they may be of a generation with other partitions. lanes: the opened
        lanes to the next stage, with their status among the standings. Raises InputError for an
        output that was written from other inputs.
        """
        if is_of_others:
            standings = {name: moved_over(one, start) for name, one in standings.items()}
        super().__init__(group, standings)
        self._plan = plan
        self._lanes = lanes
        self._of_lanes = frozenset(filter(is_lane, standings))
        self._guards = guards
        self._emit = emit
        for one in standings.values():
            if one.committed is not None:
                cuts.check_inputs(one.committed.cut, start, one.name)
        nothing = Commit(start, "")
        self._muted = {
            output: one.committed or nothing for output, one in standings.items() if one.records_cut
        }
        self._resting = Resting(group, plan)
        self._unfinished = {
            output: one.unfinished for output, one in standings.items() if one.unfinished
        }
        self._changed: frozenset[str] = frozenset()
        self._superseded: frozenset[str] = frozenset()
        self._was_shown: dict[str, PublishedRows] = {}
        self._replayed: dict[str, PublishedRows] = {}
        self.stops = cuts.in_order(
            [*(commit.cut for commit in self._muted.values()), *self._unfinished.values()]
        )
        """The cuts that a replay must come to one after the other, at least."""

    @property
    def is_behind(self) -> bool:
        """Whether some output takes the next changes, while others may hold them already."""
        return any(output not in self._muted for output in self.standings)

    @property
    def is_unfinished(self) -> bool:
        """Whether an output that is not muted holds a part of a cut, and cannot be committed."""
        return any(output not in self._muted for output in self._unfinished)

    def accepts(self, cut: Cut, *, begins_new: bool = False) -> bool:
        """Return whether an engine at ``cut`` can compute the changes that every output lacks.

        begins_new: whether outputs that hold nothing may begin with the whole table there.
        """
        if not self._guards("checkpoint_behind_sinks"):
            return True
        return all(
            cuts.is_within(cut, commit.cut)
            for output, commit in self._muted.items()
            if not (begins_new and self._is_new(output))
        )

    def _is_new(self, output: str) -> bool:
        standing = self.standings[output]
        is_empty = standing.committed is None and standing.unfinished is None
        return is_empty and output not in self._of_lanes

    def begin_new_at(self, cut: Cut) -> None:
        """Let outputs that hold nothing begin with the whole table at ``cut``."""
        for output in self._muted:
            if self._is_new(output):
                self._muted[output] = Commit(cut, "")
        commits = [*(one.cut for one in self._muted.values()), *self._unfinished.values()]
        self.stops = cuts.in_order(commits)

    def take_from_others(self) -> frozenset[str]:
        """Take over what another generation has written; return the outputs that show its rows.

        What it has left unfinished is superseded: its rows are among those that are compared.
        """
        shown = {
            output
            for output, commit in self._muted.items()
            if output not in self._of_lanes and (commit.digest or output in self._unfinished)
        }
        torn = shown & self._unfinished.keys()
        self._superseded = frozenset(o for o in torn if not self._plan.output(o).is_stream)
        for output in sorted(self._superseded):
            assert isinstance(self._group, SupersedingGroup)
            self._group.supersede(output)
            del self._unfinished[output]
        commits = [*(one.cut for one in self._muted.values()), *self._unfinished.values()]
        self.stops = cuts.in_order(commits)
        return frozenset(shown)

    async def look_back(
        self, changed: Collection[str], *, is_replayed: bool, ahead: ReadAhead | None = None
    ) -> None:
        """Ask the outputs which keys their readers may hold of rows that other code has computed.

        is_replayed: whether all rows are computed again, also final ones. ahead: the changes that
        were read already. Raises OutputError and OSError.
        """
        from ripple.task.published_rows import PublishedRows, keys_of  # noqa: PLC0415 - slow, and seldom

        group = self._group
        if not isinstance(group, KeyListingGroup):
            return
        for output in changed:
            if output not in self._muted or output in self._of_lanes:
                continue
            if self._plan.output(output).is_stream:
                continue
            key = self._plan.key_of(self._plan.output(output))
            if is_replayed:
                self._replayed[output] = PublishedRows(key)
            shown, mark = PublishedRows(key), None
            if ahead is not None:
                shown, mark = ahead.take(output, key)
            self._was_shown[output] = shown
            names = [field.name for field in key]
            found = group.shown_keys(output, names)
            if mark is not None:
                assert isinstance(group, RereadGroup)
                found = group.written_since(output, mark)
            async for batch in found:
                try:
                    shown.changed([keys_of(batch, key)])
                except pa.ArrowException as error:
                    raise OutputError(
                        f"{self.standings[output].name} shows rows of another key than those of "
                        f"{output!r} are now: name another place ({error})"
                    ) from error

    def begin(self, engine: Partition, changed: frozenset[str]) -> None:
        """Unmute the outputs that hold the cut of ``engine``, just restored or made.

        changed: outputs with another definition than that of their recorded digest. Raises as
        ``write``.
        """
        self._changed = changed
        self._unmute(engine)

    def write(self, changes: Changes, partition: Partition) -> None:
        """Give each output the changes that it lacks.

        Raises SnapshotError when a table differs from the digest that its sink has recorded.
        """
        made = changes.outputs.made
        for output, replayed in self._replayed.items():
            rows = made.get(output)
            if rows is not None and rows.num_rows:
                replayed.changed([with_named_ops(rows.arrow())])
        super().write(changes, partition)
        for output, cut in list(self._unfinished.items()):
            if cut == changes.cut and output in made and not self._is_muted(output):
                del self._unfinished[output]
        if self._muted:
            self._unmute(partition)

    def _is_muted(self, output: str) -> bool:
        return output in self._muted and self._guards("muted_replay")

    def _lacks(self, output: str, rows: Made | Part, cut: Cut) -> bool:
        if self._is_muted(output):
            return False
        records_cut = self.standings[output].records_cut
        return rows.num_rows > 0 or (records_cut and self._unfinished.get(output) in (None, cut))

    def _unmute(self, engine: Partition) -> None:
        for output, commit in list(self._muted.items()):
            if dict(commit.cut) != engine.cut:
                continue
            del self._muted[output]
            if output in self._of_lanes:
                assert self._lanes is not None
                self._lanes.pass_by(engine, [output])
                continue
            found = engine.digests[output]
            if output in self._superseded:
                self._write_table(output, engine)
                continue
            if self.standings[output].committed is None:
                if engine.table(output).num_rows:  # of history that was backfilled
                    self._write_table(output, engine)
                continue
            if commit.digest in ("", found) or not self._guards("digest_check"):
                continue
            # Events are in no table that could take the place of those that were shown.
            if self._plan.output(output).is_stream or output not in self._changed:
                self._diverged(output, commit, found)
            self._write_table(output, engine)

    def _diverged(self, output: str, commit: Commit, found: str) -> NoReturn:
        """Raise SnapshotError for a table that is not the one that its sink has recorded."""
        self._emit(Diverged(output, commit.cut, found, commit.digest))
        shown = self._plan.output(output)
        way_out = f"say --rebuild {rebuild_word(self._plan, shown.of)} (to ripple run; "
        way_out += "workers have no such flag: name another store and other outputs)"
        if shown.is_stream:
            way_out = "give the sink another name, since events are not taken back"
            if output in self._changed:  # behind a narrowed join
                way_out = f"go on with the code before up to its next checkpoint, or {way_out}"
        raise SnapshotError(
            f"output {output!r} at {cuts.text(commit.cut)}: the state that was restored "
            f"has digest {found}, but {self.standings[output].name} recorded "
            f"{commit.digest}: the inputs, the checkpoint or the code are not those that "
            f"wrote it. Nothing was committed; if the code was changed, {way_out}"
            f"{compaction_note(self._plan)}"
        )

    def _write_table(self, output: str, engine: Partition) -> None:
        """Write the rows that an output is to show, and remove its other rows."""
        table = engine.table(output)
        shown, replayed = self._was_shown.pop(output, None), self._replayed.pop(output, None)
        if shown is not None:
            table = self._compared(output, engine, table, shown, replayed)
        # In one piece: a sink takes all of a cut at once.
        for batch in table.combine_chunks().to_batches():
            reached = Commit(engine.cut, engine.digests[output])
            self._group.write(output, self.shown(output, batch, engine), reached)

    def _compared(
        self,
        output: str,
        engine: Partition,
        table: pa.Table,
        shown: PublishedRows,
        replayed: PublishedRows | None,
    ) -> pa.Table:
        plan = self._plan
        fold = plan.fold(plan.output(output).of)
        if replayed is not None and replayed.has_rows:
            table = replayed.rows().select(table.column_names).cast(table.schema)
        names = [field.name for field in fold.row_key]
        shown.settled(table.select(names))
        if replayed is None and plan.frees(fold) and isinstance(fold, RowTable):
            shown.only(engine.open_keys(fold.name))
        elif self.standings[output].is_shared:
            shown.only(_keys_held(plan, fold, engine.snapshot().tables))
        left = shown.left()
        # Final rows, and rows of windows that are over, are in no state, and stay as they were.
        if replayed is None and plan.frees(fold) and "window_start_ns" in names:
            ends = plan.closes_ns(fold, left.column("window_start_ns").to_numpy())
            left = left.filter(pa.array(ends > engine.watermark_ns))
        op = pa.array(np.full(table.num_rows, OP_SET, np.int8))
        both = [table.append_column(OP, op), left]
        return pa.concat_tables(both, promote_options="default")

    async def rest(self, engine: Partition) -> None:
        """Remove the rows of partitions that were taken over, once this one has committed them."""
        if self._guards("other_partitions"):
            await self._resting.run(self._shown, engine)

    @property
    def has_others(self) -> bool:
        """Whether this partition takes over others."""
        return self._resting.is_needed(self._shown)

    @property
    def _shown(self) -> list[str]:
        return [output for output in self.standings if not is_lane(output)]

    @property
    def commits_beside(self) -> bool:
        """Whether more may be written while a commit is under way."""
        is_beside = self._lanes is None or self._lanes.commits_beside
        return is_beside and super().commits_beside

    def commit(self, partition: Partition) -> Coroutine[Any, Any, None]:
        """Return a coroutine that makes all written rows durable, with the present cut.

        During a replay, muted outputs hold a later cut already. It raises OSError.
        """
        cut, digests = partition.cut, partition.digests
        watermarks_ns = partition.watermarks_ns
        for output, commit in self._muted.items():
            name = self.standings[output].name
            assert cuts.is_within(cut, commit.cut), f"{name} is behind, and not written"
        live = [output for output in self.standings if output not in self._muted]
        reached = {
            output: Commit(cut, digests[output], watermarks_ns)
            for output in live
            if output not in self._of_lanes
        }
        if self._lanes is None:
            return self._group.commit(reached)
        taken = self._lanes.take(partition, [one for one in live if one in self._of_lanes])
        reached |= {name: one._replace(watermarks_ns=watermarks_ns) for name, one in taken.items()}
        return _and_lanes(self._group.commit(reached), self._lanes)


async def _and_lanes(act: Coroutine[Any, Any, None], lanes: Lanes) -> None:
    try:
        await act
    finally:
        act.close()  # where this never began
    await lanes.commit()


def compaction_note(plan: Plan) -> str:
    """Return how compaction explains another digest; "" for a plan without tables."""
    names = [one.name for one in plan.sources if one.table is not None]
    if not names:
        return ""
    tables = ", ".join(map(repr, names))
    rebuilt = "".join(
        f" --rebuild {rebuild_word(plan, fold.name)}" for fold in plan.folds if fold.input in names
    )
    return (
        f". If the topic of {tables} is compacted, records before that cut are gone, and only a "
        "checkpoint that is near enough leads to it: restore the folder of checkpoints, or say"
        f"{rebuilt} (to ripple run), which writes what differs, or name another folder and other "
        "outputs"
    )


def _keys_held(plan: Plan, fold: Fold, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return all keys of which a partition may have shown a row: of a join those of its sides.

    Of pairs of rows, whose keys are more than both sides, the fields of the left.
    """
    names = [field.name for field in fold.row_key]
    if not isinstance(fold, TableJoin):
        return tables[fold.node_key].select(names)
    held = [_keys_held(plan, plan.fold(fold.input), tables)]
    names = [name for name in names if name in held[0].column_names]
    if fold.is_by_key:
        theirs = _keys_held(plan, plan.fold(fold.right), tables)
        pairs = [pair for pair in fold.pairs if pair[1] in theirs.column_names]
        held.append(pa.table({left: theirs.column(right) for left, right in pairs}))
        names = [name for name in names if name in held[1].column_names]
    return pa.concat_tables([one.select(names) for one in held], promote_options="permissive")
