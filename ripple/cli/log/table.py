"""The table that the changes in an output's topic add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.cli.lib.exits import say
from ripple.cli.lib.topic_rows import key_of, last_of, rows_of
from ripple.connectors.files.text.sink import TextFormat, TextLines
from ripple.connectors.log.grown import newest_last
from ripple.connectors.log.sink import committed_in
from ripple.connectors.target import open_target
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.core.row_ops import OP
from ripple.model.schema.logical.showing import showing

if TYPE_CHECKING:
    from ripple.model.schema.types import Field
    from ripple.storage.log import Topic

_MODULUS = 1 << 64


def print_table(topic: Topic) -> None:
    """Write the rows as JSON lines, sorted by key, and their cut on standard error.

    Raises InputError if no output has written the topic, or if two partitions have the same key.
    """
    key = key_of(topic)
    numbers = newest_last(topic) if topic.before else range(topic.partitions)
    tables = [rows_of(topic, partition, key) for partition in numbers]
    rows = pa.concat_tables(tables).combine_chunks()
    if topic.before:  # a row may be on its way to another partition
        rows = rows.take(pa.array(np.sort(last_of(rows, key))))
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


def _check_apart(topic: Topic, key: list[Field], rows: pa.Table) -> None:
    if len(last_of(rows, key)) == rows.num_rows:
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
        if not reached.cut:
            say(f"partition {partition}: no rows, as its stage has fewer partitions now")
            continue
        total = (total + int(reached.digest, 16)) % _MODULUS
        say(
            f"partition {partition}: input read up to {cuts.text(reached.cut)}, "
            f"digest {reached.digest}"
        )
    say(f"digest {total:016x}")
