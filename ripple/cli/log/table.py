"""The table that the changes in an output's topic add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.cli.lib.exits import say
from ripple.connectors.files.text.sink import TextFormat, TextLines
from ripple.connectors.log.sink import committed_in
from ripple.connectors.target import open_target
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE
from ripple.model.batch import Marker
from ripple.model.keys.space import key_space
from ripple.model.schema.logical.showing import showing
from ripple.model.schema.types import Option
from ripple.storage.log import PartitionReader
from ripple.storage.log.body import columns_of

if TYPE_CHECKING:
    from ripple.model.schema.types import Field
    from ripple.storage.log import Topic

# Changes held before they are reduced to the last of each key.
PENDING_ROWS_MAX = 1 << 18
_MODULUS = 1 << 64


def print_table(topic: Topic) -> None:
    """Write the rows as JSON lines, sorted by key, and their cut on standard error.

    Raises InputError if no output has written the topic, or if two partitions have the same key.
    """
    key = _key(topic)
    tables = [_rows(topic, partition, key) for partition in range(topic.partitions)]
    rows = pa.concat_tables(tables).combine_chunks()
    if key:
        rows = rows.sort_by([(member.name, "ascending") for member in key])
    _check_apart(topic, key, rows)
    target = open_target("-")
    try:
        lines = TextLines(TextFormat("json"), target.name)
        show = showing(topic.schema.fields)
        for batch in rows.drop_columns(OP).to_batches():
            shown = batch if show is None else show(batch)
            target.write(lines.of(shown, is_first=False))
    finally:
        target.close()
    _say_reached(topic)


def _key(topic: Topic) -> list[Field]:
    """Return the key of the rows, which an output's changes always have."""
    first, *others = topic.schema.fields
    if first.name != OP:
        raise InputError(
            f"{topic.path} holds records, not the changes of an output: it has no op; read them "
            "with ripple log tail"
        )
    return [one for one in others if not (one.optional or isinstance(one.type, Option))]


def _rows(topic: Topic, partition: int, key: list[Field]) -> pa.Table:
    """Return the rows of a partition; memory is bounded by PENDING_ROWS_MAX and their number."""
    kept, pending = columns_of(topic.schema).empty_table(), 0
    with PartitionReader(topic, partition) as reader:
        for entry in reader.read():
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
    last = _last(changes, key)
    newest = changes.take(pa.array(np.sort(last)))
    return newest.filter(pc.not_equal(newest.column(OP), OP_NAMES[OP_REMOVE]))


def _last(rows: pa.Table, key: list[Field]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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


def _check_apart(topic: Topic, key: list[Field], rows: pa.Table) -> None:
    if len(_last(rows, key)) == rows.num_rows:
        return
    if not key:
        raise InputError(f"{topic.path} has a row without a key in several partitions")
    names = [member.name for member in key]
    counted = rows.group_by(names).aggregate([(OP, "count")])
    twice = counted.filter(pc.greater(counted.column(f"{OP}_count"), 1)).select(names)
    raise InputError(
        f"{topic.path} has rows of the key {twice.slice(0, 1).to_pylist()[0]} in several "
        "partitions: its writers read inputs that are not partitioned by key"
    )


def _say_reached(topic: Topic) -> None:
    """Print the cut of the rows, and the digest of all of them."""
    total = 0
    for partition in range(topic.partitions):
        reached = committed_in(topic, partition)
        if reached is None:
            say(f"partition {partition}: no cut was committed, as a one-shot run commits none")
            continue
        total = (total + int(reached.digest, 16)) % _MODULUS
        say(
            f"partition {partition}: input read up to {cuts.text(reached.cut)}, "
            f"digest {reached.digest}"
        )
    say(f"digest {total:016x}")
