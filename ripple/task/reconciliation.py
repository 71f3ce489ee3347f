"""Reconciliation of a downstream task's outputs with its state, in one write each.

Its input is in no log that could be read again, so it does not repeat the previous task's writes:
it receives changes without output up to a cut at or beyond all that its outputs hold, and writes
their difference there. See ``docs/exchange.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.contract import Commit
from ripple.core import cut as cuts
from ripple.core.events import Diverged
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.task.published_rows import PublishedRows, published

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.connectors.commit_group import OutputStatus, ReadableGroup
    from ripple.core.cut import Cut
    from ripple.core.events import EventListener
    from ripple.engine.machine import Changes
    from ripple.model.pipeline.plan import Plan
    from ripple.task.downstream_start import DownstreamStart
    from ripple.task.upstream_intake import UpstreamIntake
    from ripple.world.ports import Guards


class Reconciliation:
    """Leads from a restored state to correct outputs.

    The calls are ``look``, then ``followed`` after each stabilization, until it
    ``has_come``, and ``write``.
    """

    def __init__(
        self,
        plan: Plan,
        base: DownstreamStart,
        outputs: ReadableGroup,
        standings: Mapping[str, OutputStatus],
        *,
        guards: Guards,
        emit: EventListener,
    ) -> None:
        self._plan = plan
        self._base = base
        self._engine = base.engine
        self._outputs = outputs
        self._standings = standings
        self._guards = guards
        self._emit = emit
        self._was_shown: dict[str, PublishedRows] = {}
        # Rows that became final while nothing was written, by output.
        self._final: dict[str, list[pa.Table]] = {}

    @property
    def holds_nothing(self) -> bool:
        """Whether there is no checkpoint, and nothing in any output."""
        return self._base.checkpoint is None and not any(map(_holds, self._standings.values()))

    async def look(self) -> None:
        """Find out which keys the readers of each output may have."""
        checkpoint = self._base.checkpoint
        for output, standing in self._standings.items():
            if not _holds(standing):
                continue
            of = next(one.of for one in self._plan.outputs if one.name == output)
            shown = self._was_shown[output] = PublishedRows(self._plan.fold(of).key)
            mark = None if checkpoint is None else checkpoint.notes.get(mark_of(output))
            if mark is not None:  # else it was no output then, and its log is all that tells
                shown.there(self._engine.table(output))
            if self._guards("read_back"):
                async for batch in self._outputs.written_since(output, mark):
                    shown.changed([batch])

    def followed(self, changes: Changes) -> None:
        """Take the changes of a stabilization, which are not written."""
        if not self._guards("final_rows"):
            return
        for output, rows in changes.final.items():
            if rows.num_rows:
                self._final.setdefault(output, []).append(pa.Table.from_batches([rows]))

    def has_come(self, following: UpstreamIntake) -> bool:
        """Return whether every sender was heard and every output holds no more than this."""
        if not following.has_heard_all:
            return False
        if not self._guards("come_back"):
            return True
        here = self._engine.cut
        return following.is_past_lives_before and all(
            cuts.is_within(cut, here) for cut in self._held()
        )

    def write(self, schemas: Mapping[str, pa.Schema]) -> int:
        """Write each output's difference at the present cut, once; return how many rows.

        schemas: of the changes of each output.
        """
        engine, digests, count = self._engine, self._engine.digests, 0
        for output, standing in self._standings.items():
            commit = standing.committed
            is_same = commit is not None and dict(commit.cut) == engine.cut
            if is_same and self._base.checkpoint is not None and standing.unfinished is None:
                self._compare(output, standing, digests[output])
                continue
            if standing.unfinished is not None:
                self._outputs.supersede(output)
            batch = self._lacking(output, schemas[output])
            if batch.num_rows:
                self._outputs.write(output, batch, Commit(engine.cut, digests[output]))
                count += batch.num_rows
        return count

    def _held(self) -> Iterator[Cut]:
        """Yield to where outputs have come, or a write of theirs that was not finished."""
        for standing in self._standings.values():
            if standing.committed is not None:
                yield standing.committed.cut
            if standing.unfinished is not None:
                yield standing.unfinished

    def _lacking(self, output: str, schema: pa.Schema) -> pa.RecordBatch:
        """Return the changes that correct an output, whichever of its rows were published."""
        table = self._engine.table(output)
        rows = [table, *self._final.get(output, ())]
        removed = table.slice(0, 0).select([])
        shown = self._was_shown.get(output)
        if shown is not None:
            rows = [shown.settled(part) for part in rows]
            if self._guards("gone_keys"):
                removed = self._to_remove(shown.left())
        return published(schema, rows, removed)

    def _to_remove(self, left: pa.Table) -> pa.Table:
        """Return which of the keys that are gone are to be removed.

        Where the state was lost, it is unknown which rows of past windows were final.
        """
        is_lost = self._base.checkpoint is None
        has_windows = self._plan.folds[0].window is not None
        if not (is_lost and has_windows and "window_start_ns" in left.column_names):
            return left
        ends = left.column("window_start_ns").to_numpy() + self._plan.closes_after_ns
        return left.filter(pa.array(ends > self._engine.watermark_ns))

    def _compare(self, output: str, standing: OutputStatus, found: str) -> None:
        commit = standing.committed
        assert commit is not None
        if commit.digest in ("", found) or not self._guards("digest_check"):
            return
        self._emit(Diverged(output, commit.cut, found, commit.digest))
        raise SnapshotError(
            f"output {output!r} at {cuts.text(commit.cut)}: the state that was restored has digest "
            f"{found}, but {standing.name} recorded {commit.digest}: the senders' inputs, the "
            "checkpoint or the code are not those that wrote it. Nothing was written; if the code "
            "was changed, name another store and other outputs"
        )


def mark_of(output: str) -> str:
    """Return the note of a checkpoint that says where an output was at its cut."""
    return f"shown/{output}"


def _holds(standing: OutputStatus) -> bool:
    return standing.committed is not None or standing.unfinished is not None
