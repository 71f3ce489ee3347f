"""The rows that the changes in an output's topic add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.errors import InputError
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE
from ripple.model.batch import Marker
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Option
from ripple.storage.log import PartitionReader
from ripple.storage.log.body import columns_of

if TYPE_CHECKING:
    from ripple.model.schema.types import Field
    from ripple.storage.log import Topic

# Changes held before they are reduced to the last of each key.
PENDING_ROWS_MAX = 1 << 18


def key_of(topic: Topic) -> list[Field]:
    """Return the key of the rows, which an output's changes always have."""
    first, *others = topic.schema.fields
    if first.name != OP:
        raise InputError(
            f"{topic.path} holds records, not the changes of an output: it has no op; read them "
            "with ripple log tail"
        )
    return [one for one in others if not (one.optional or isinstance(one.type, Option))]


def rows_of(topic: Topic, partition: int, key: list[Field], end: int | None = None) -> pa.Table:
    """Return the rows of a partition; memory is bounded by PENDING_ROWS_MAX and their number.

    end: the offset before which changes count, None for all.
    """
    kept, pending = columns_of(topic.schema).empty_table(), 0
    with PartitionReader(topic, partition) as reader:
        for entry in reader.read(None, end):
            if isinstance(entry, Marker):
                continue
            changes = pa.Table.from_batches([entry.records]).cast(kept.schema)
            kept = pa.concat_tables([kept, changes])
            pending += changes.num_rows
            if pending > max(PENDING_ROWS_MAX, kept.num_rows // 2):
                kept, pending = _newest(kept, key), 0
    return _newest(kept, key)


def _newest(changes: pa.Table, key: list[Field]) -> pa.Table:
    """Return the last change of each key, without removed keys."""
    changes = changes.combine_chunks()
    last = last_of(changes, key)
    newest = changes.take(pa.array(np.sort(last)))
    return newest.filter(pc.not_equal(newest.column(OP), OP_NAMES[OP_REMOVE]))


def last_of(rows: pa.Table, key: list[Field]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the positions of the last row of each key."""
    if not key or not rows.num_rows:
        return np.arange(rows.num_rows)[-1:]
    space = key_space(key)
    columns = [rows.column(member.name).combine_chunks() for member in key]
    slots = space.slots(
        [one.chunk(0) if isinstance(one, pa.ChunkedArray) else one for one in columns]
    )
    last = np.full(space.capacity, -1)
    np.maximum.at(last, slots, np.arange(len(slots)))
    return last[last >= 0]
