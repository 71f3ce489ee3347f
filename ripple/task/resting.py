"""Outputs with rows from or for other partitions, after a change of a stage's partition count.

See docs/design/0028-partitions.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.commit_group import ShrinkingGroup
from ripple.connectors.contract import Commit
from ripple.core.row_ops import OP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.connectors.commit_group import CommitGroup, OutputStatus
    from ripple.core.cut import Cut
    from ripple.engine.machine.partition import Partition
    from ripple.model.pipeline.plan import Plan

# The digest of rows of several partitions: equal to no other digest.
MOVED = "moved"


class Resting:
    """Removes the rows of partitions that this one has taken over."""

    def __init__(self, group: CommitGroup, plan: Plan) -> None:
        self._group, self._plan = group, plan

    def is_needed(self, outputs: Iterable[str]) -> bool:
        """Return whether this partition takes over others."""
        group = self._group
        return isinstance(group, ShrinkingGroup) and any(map(group.beside, outputs))

    async def run(self, outputs: Iterable[str], engine: Partition) -> None:
        """Put them at rest, after this partition has published their rows.

        A reader may have a row twice for a while, and is never without it. Raises OutputError and
        OSError.
        """
        from ripple.task.published_rows import PublishedRows, published  # noqa: PLC0415 - slow, and seldom

        group, plan = self._group, self._plan
        if not isinstance(group, ShrinkingGroup):
            return
        for output in outputs:
            for sink in group.beside(output):
                shown = PublishedRows(plan.key_of(plan.output(output)))
                if not sink.is_at_rest:
                    shown.changed(sink.written_since(None))
                nothing = engine.table(output).slice(0, 0)
                schema = nothing.append_column(OP, pa.array(np.zeros(0, np.int8))).schema
                await group.rest(sink, published(schema, [nothing], shown.left()))


def moved_over(standing: OutputStatus, start: Cut) -> OutputStatus:
    """Return the status of an output at the merged cut of all partitions with its rows.

    start: the cut of the partition's inputs before the first record.
    """
    known = [one for one in standing.others if one]
    if standing.committed is not None and standing.committed.cut:
        known.append(standing.committed.cut)
    reached = {name: max(one.get(name, 0) for one in known) for name in start} if known else {}
    reached = {name: max(offset, start[name]) for name, offset in reached.items()}
    if not reached or (standing.committed and dict(standing.committed.cut) == reached):
        return standing
    return replace(standing, committed=Commit(reached, MOVED))
