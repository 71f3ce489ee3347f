"""The rows that an output has shown in its former home, for a new topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.core.row_ops import with_named_ops
from ripple.engine.migration.homes import HomeError
from ripple.model.batch import Batch
from ripple.storage.log import PartitionReader, Topic
from ripple.storage.log_uri import LogUri
from ripple.task.published_rows import PublishedRows
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan


def shown_in(place: str, plan: Plan, output: Output, partitions: int) -> pa.Table:
    """Return the table of an output's log: the newest row of each key, also those that are over.

    partitions: of the output. Raises HomeError where the log has lost its beginning, and LogError.
    """
    at = LogUri.parse(place)
    topic = Topic.open(LiveDisk(at.folder, make=False), at.topic)
    shown = PublishedRows(plan.fold(output.of).row_key)
    for number in range(partitions):
        with PartitionReader(topic, at.partition or number) as reader:
            first, _ = reader.range()
            if first:
                raise HomeError(
                    f"{place} begins at offset {first}, and rows before it that are over are in no "
                    f"other place: output {output.name!r} cannot get another topic"
                )
            shown.changed(one.records for one in reader.read(0) if isinstance(one, Batch))
    return shown.rows() if shown.has_rows else pa.table({})


def with_changes(
    plan: Plan, output: Output, rows: pa.Table, changes: Sequence[pa.RecordBatch]
) -> pa.Table:
    """Return a table after changes, which have operations as numbers."""
    if not any(one.num_rows for one in changes):
        return rows
    shown = PublishedRows(plan.fold(output.of).row_key)
    if rows.num_rows:
        shown.there(rows)
    shown.changed(with_named_ops(one) for one in changes)
    return shown.rows()
