"""Recovery by reconciliation: of a downstream task's outputs with its state, in one write each.

Its input is in no log that could be read again, so it does not repeat the previous task's writes:
it receives changes without output up to a cut at or beyond those of its outputs, and writes their
difference there. See ``docs/exchange.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.core import cut as cuts
from ripple.core.events import Diverged
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.task.published_rows import PublishedRows, published
from ripple.task.read_ahead import ReadAhead
from ripple.task.replayed_outputs import compaction_note
from ripple.task.resting import Resting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.connectors.commit_group import OutputStatus
    from ripple.core.cut import Cut
    from ripple.core.events import Restored
    from ripple.engine.machine import Changes
    from ripple.engine.machine.follower import Follower
    from ripple.task.durable_run import DurableRun
    from ripple.task.outputs import Outputs
    from ripple.task.restore import StartingPoint
    from ripple.task.spec import TaskContext
    from ripple.task.stage_spec import StageSpec
    from ripple.task.upstream_intake import UpstreamIntake
    from ripple.world.ports import Guards


class Reconciliation:
    """Leads from a restored state to correct outputs. See Recovery."""

    def __init__(
        self,
        spec: StageSpec,
        base: StartingPoint,
        engine: Follower,
        outputs: Outputs,
        intake: UpstreamIntake,
        *,
        context: TaskContext,
        guards: Guards,
        ahead: ReadAhead | None = None,
        is_of_others: bool = False,
    ) -> None:
        """Begin nothing yet.

        ahead: the changes of outputs that were read before they were opened, None for none.
        is_of_others: whether the published rows may be of another generation.
        """
        self._ahead = ahead or ReadAhead()
        self._spec = spec
        self._base = base
        self._engine = engine
        self._outputs = outputs
        self._standings = outputs.standings
        self._intake = intake
        self._context = context
        self._guards = guards
        self._is_of_others = is_of_others
        self._restored_ns = engine.watermark_ns
        self._was_shown: dict[str, PublishedRows] = {}
        # Rows that became final while nothing was written, by output.
        self._final: dict[str, list[pa.Table]] = {}

    async def run(self, durable: DurableRun) -> int | None:
        """Receive up to a cut at or beyond those of the outputs, and write the difference."""
        engine, intake, report = self._engine, self._intake, self._context.report
        if self._holds_nothing:
            # So that outputs without any checkpoint are of one that was lost.
            await durable.complete_checkpoint()
        await self._look()
        await intake.begin()
        changes = engine.stabilize()
        while not self._has_come:
            if self._context.stop():
                return None
            if await intake.take_in():
                changes = engine.stabilize()
                self._received(changes)
            else:
                await intake.more()
        self._write({output: rows.schema for output, rows in changes.outputs.items()})
        report.rows_out = self._outputs.rows_out
        await durable.commit_restored()
        if self._guards("other_partitions"):
            await Resting(self._spec.outputs, self._spec.plan).run(self._standings, engine)
        return report.events

    async def resume(self, durable: DurableRun, restored: Restored) -> None:
        """Do nothing: the intake goes on."""

    @property
    def _holds_nothing(self) -> bool:
        """Whether there is no checkpoint, and nothing in any output."""
        return self._base.checkpoint is None and not any(map(_holds, self._standings.values()))

    async def _look(self) -> None:
        """Find out which keys the readers of each output may have."""
        checkpoint, plan = self._base.checkpoint, self._spec.plan
        for output, standing in self._standings.items():
            if not _holds(standing):
                continue
            of = plan.output(output).of
            shown, end = self._ahead.take(output, plan.fold(of).key)
            self._was_shown[output] = shown
            mark = None if checkpoint is None else checkpoint.notes.get(mark_of(output))
            if self._is_of_others:
                mark = None  # it is that of another place
            if mark is not None:  # else it was no output then, and its log is all that tells
                shown.there(self._engine.table(output))
            if self._guards("read_back"):
                async for batch in self._spec.outputs.written_since(output, end or mark):
                    shown.changed([batch])

    def _received(self, changes: Changes) -> None:
        """Take the changes of a stabilization, which are not written."""
        if not self._guards("final_rows"):
            return
        for output, rows in changes.final.items():
            if rows.num_rows:
                self._final.setdefault(output, []).append(pa.Table.from_batches([rows]))

    @property
    def _has_come(self) -> bool:
        """Whether every sender was heard and no output holds more than this."""
        if not self._intake.has_heard_all:
            return False
        if not self._guards("come_back"):
            return True
        here = self._engine.cut
        return self._intake.is_past_lives_before and all(
            cuts.has_reached(here, cut) for cut in self._held()
        )

    def _write(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Write each output's difference at the present cut, once.

        schemas: of the changes of each output.
        """
        engine, digests = self._engine, self._engine.digests
        for output, standing in self._standings.items():
            commit = standing.committed
            is_same = commit is not None and dict(commit.cut) == engine.cut
            is_own = self._base.checkpoint is not None and not self._is_of_others
            if is_same and is_own and standing.unfinished is None:
                self._compare(output, standing, digests[output])
                continue
            if standing.unfinished is not None:
                self._spec.outputs.supersede(output)
            self._outputs.correct(output, self._lacking(output, schemas[output]), engine)

    def _held(self) -> Iterator[Cut]:
        """Yield to where outputs have come, or a write of theirs that was not finished."""
        for standing in self._standings.values():
            if standing.committed is not None:
                yield standing.committed.cut
            if standing.unfinished is not None:
                yield standing.unfinished
            yield from standing.others

    def _lacking(self, output: str, schema: pa.Schema) -> pa.RecordBatch:
        """Return the changes that correct an output, whichever of its rows were published."""
        table = self._engine.table(output)
        rows = [table, *self._final.get(output, ())]
        removed = table.slice(0, 0).select([])
        shown = self._was_shown.get(output)
        if shown is not None:
            rows = [shown.settled(part) for part in rows]
            if self._guards("gone_keys"):
                removed = self._to_remove(output, shown.left())
        return published(schema, rows, removed)

    def _to_remove(self, output: str, left: pa.Table) -> pa.Table:
        """Return which of the keys that are gone are to be removed.

        A mark may be older than its checkpoint, so rows that were final there may be read back.
        Where the state was lost, it is unknown which rows of past windows were final.
        """
        plan = self._spec.plan
        fold = plan.fold(plan.output(output).of)
        if not plan.frees(fold) or "window_start_ns" not in left.column_names:
            return left
        is_lost = self._base.checkpoint is None or self._is_of_others
        over_ns = self._engine.watermark_ns if is_lost else self._restored_ns
        ends = plan.closes_ns(fold, left.column("window_start_ns").to_numpy())
        return left.filter(pa.array(ends > over_ns))

    def _compare(self, output: str, standing: OutputStatus, found: str) -> None:
        commit = standing.committed
        assert commit is not None
        if commit.digest in ("", found) or not self._guards("digest_check"):
            return
        self._context.emit(Diverged(output, commit.cut, found, commit.digest))
        raise SnapshotError(
            f"output {output!r} at {cuts.text(commit.cut)}: the state that was restored has digest "
            f"{found}, but {standing.name} recorded {commit.digest}: the senders' inputs, the "
            "checkpoint or the code are not those that wrote it. Nothing was committed; if the "
            "code was changed, name another store and other outputs"
            f"{compaction_note(self._spec.plan)}"
        )


def mark_of(output: str) -> str:
    """Return the note of a checkpoint that says where an output was at its cut."""
    return f"shown/{output}"


def _holds(standing: OutputStatus) -> bool:
    return standing.committed is not None or standing.unfinished is not None
