"""Lanes that are committed with a partition's outputs, in one transaction: see docs/repartition.md.

The data are one column of bodies: the rows of a cut and its mark as Arrow streams, in several where
they are many. The mark is the last row of the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.contract import Commit
from ripple.core.codec import arrow
from ripple.storage.log.body import columns_of
from ripple.task.lanes import is_lane, lane_name
from ripple.task.repartition.rows import Mark, records_of
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ripple.connectors.commit_group import CommitGroup, OutputStatus
    from ripple.core.cut import Cut
    from ripple.engine.machine.partition import Partition
    from ripple.model.schema.types import Schema
    from ripple.world.ports import Guards

# Half of what brokers take by themselves: a record has more in it than the body.
BODY_BYTES_MAX = 512 << 10
_BODIES = pa.schema([pa.field("body", pa.binary())])


class CarriedLanes:
    """The lanes of one sender, as more outputs of its commit group: see Lanes.

    Invariant: ``_cuts[t]`` is the cut that the lane to target t holds, or will with the next
    commit.
    """

    commits_beside = True

    def __init__(
        self,
        schema: Schema,
        targets: Collection[int],
        group: CommitGroup,
        guards: Guards = all_guards,
    ) -> None:
        """Write rows of a lane's schema through the group, which was made to carry them."""
        self._schema = schema
        self._names = {lane_name(target): target for target in targets}
        self._group = group
        self._guards = guards
        self._cuts: dict[int, Cut] = {}

    async def open(
        self, epoch: int | None, standings: Mapping[str, OutputStatus]
    ) -> Mapping[str, OutputStatus]:
        """Return how the group has found the lanes: it was opened before."""
        del epoch
        found = {name: one for name, one in standings.items() if is_lane(name)}
        for name, one in found.items():
            if one.committed is not None:
                self._cuts[self._names[name]] = one.committed.cut
        return found

    def pass_by(self, partition: Partition, lanes: Collection[str]) -> None:
        """Take from a partition the rows that these lanes have already, unless they are empty."""
        targets = [self._names[name] for name in lanes if self._names[name] in self._cuts]
        if targets and self._guards("lane_muted"):
            partition.outgoing_to(targets)

    def take(self, partition: Partition, lanes: Collection[str]) -> Mapping[str, Commit]:
        """Write new changes to the group, and return the commits of the lanes."""
        taken = {}
        by_target = partition.outgoing_to([self._names[name] for name in lanes])
        for target, changes in by_target.items():
            if dict(self._cuts.get(target) or {}) == dict(changes.cut):
                continue
            mark = Mark(changes.since, changes.cut, changes.watermark_ns)
            bodies = bodies_of(records_of(self._schema, changes.rows, mark))
            name, column = lane_name(target), pa.array(bodies, pa.binary())
            taken[name] = Commit(changes.cut, "")
            self._group.write(name, pa.record_batch([column], schema=_BODIES), taken[name])
            self._cuts[target] = changes.cut
        return taken

    async def commit(self) -> None:
        """Do nothing: the group has committed them."""

    async def close(self) -> None:
        """Do nothing: the group is closed by itself."""


def bodies_of(records: pa.RecordBatch, bytes_max: int = BODY_BYTES_MAX) -> list[bytes]:
    """Return records as bodies of up to so many bytes; a row alone may be larger."""
    body = arrow.dumps(records)
    if body.size <= bytes_max or records.num_rows == 1:
        return [body.to_pybytes()]
    half = records.num_rows // 2
    first, second = records.slice(0, half), records.slice(half)
    return [*bodies_of(first, bytes_max), *bodies_of(second, bytes_max)]


def records_in(body: bytes, schema: Schema) -> pa.RecordBatch:
    """Return the records of a body. Raises EncodingError."""
    return arrow.loads(body, columns_of(schema))
