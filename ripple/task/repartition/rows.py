"""The records of a lane: rows, and marks of the cuts that they reach."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.compact_cut import loaded, stored
from ripple.core.row_ops import OP, OP_NAMES
from ripple.engine.snapshots.internal import internal
from ripple.model.schema.types import Field, Int64, Option, Schema, String
from ripple.storage.log.body import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.core.cut import Cut

KIND, OFFSET, WATERMARK, REACHED = (
    internal(name) for name in ("op", "offset", "watermark_ns", "reached")
)
MARK, VOID = "mark", "void"


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a cut: the rows since the last mark lead from ``since``, None for the very first.

    watermark_ns: of the sender at ``cut``, or of the one input that the lane is of.
    """

    since: Cut | None
    cut: Cut
    watermark_ns: int

    def to_text(self) -> str:
        """Return the cuts as JSON."""
        since = None if self.since is None else stored(self.since)
        return json.dumps({"since": since, "cut": stored(self.cut)}, separators=(",", ":"))

    @classmethod
    def of(cls, text: str, watermark_ns: int) -> Mark:
        """Return the cut in a text of ``to_text``."""
        held = json.loads(text)
        since = None if held["since"] is None else loaded(held["since"])
        return cls(since, loaded(held["cut"]), watermark_ns)


def lane_schema(name: str, fields: Iterable[Field]) -> Schema:
    """Return the schema of a topic's records, which bring rows of ``fields``."""
    loose = (
        one if one.optional or isinstance(one.type, Option) else Field(one.name, one.type, True)
        for one in fields
    )
    own = (
        Field(KIND, String()),
        Field(OFFSET, Int64(), optional=True),
        Field(WATERMARK, Int64(), optional=True),
        Field(REACHED, String(), optional=True),
    )
    return Schema(name, (*own, *loose))


def records_of(schema: Schema, rows: pa.RecordBatch, mark: Mark) -> pa.RecordBatch:
    """Return rows, which may have ``op``, and the mark after them as records of a lane."""
    columns = columns_of(schema)
    count = rows.num_rows
    given = {name: rows.column(name) for name in rows.schema.names if name != OP}
    if OP in rows.schema.names:
        kinds = pa.array(OP_NAMES).take(rows.column(OP))
    else:
        kinds = pa.array(OP_NAMES).take(pa.array(np.zeros(count, np.int8)))
    given[KIND] = kinds
    last = _single(columns, {KIND: MARK, WATERMARK: mark.watermark_ns, REACHED: mark.to_text()})
    if not count:
        return last
    body = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(count, field.type)
        for field in columns
    ]
    return pa.concat_batches([pa.RecordBatch.from_arrays(body, schema=columns), last])


def void_of(schema: Schema, mark: Mark | None) -> pa.RecordBatch:
    """Return the record that voids the rows after ``mark``, or from the beginning."""
    held: dict[str, object] = {KIND: VOID}
    if mark is not None:
        held |= {WATERMARK: mark.watermark_ns, REACHED: mark.to_text()}
    return _single(columns_of(schema), held)


def _single(columns: pa.Schema, values: Mapping[str, object]) -> pa.RecordBatch:
    arrays = [pa.array([values.get(field.name)], field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def ends_in(records: pa.RecordBatch) -> list[tuple[int, str, Mark | None]]:
    """Return the marks and voids: (row, kind, mark)."""
    found = []
    reached = records.column(REACHED)
    kinds = records.column(KIND)
    for kind in (MARK, VOID):
        is_kind = pc.equal(kinds, kind).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(is_kind).tolist():
            text = reached[row].as_py()
            watermark_ns = records.column(WATERMARK)[row].as_py()
            found.append((row, kind, None if text is None else Mark.of(text, watermark_ns)))
    return sorted(found, key=lambda one: one[0])


def changes_of(records: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as the edge with ``schema`` has them, ``op`` as its code."""
    codes = pc.index_in(records.column(KIND), value_set=pa.array(OP_NAMES)).cast(pa.int8())
    columns = [codes if name == OP else records.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
