"""Columnar deltas as an outbox takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.delta import columns, convert
from ripple.delta.rows import Final, Remove, Set
from ripple.encoding import arrow
from ripple.schema import types
from ripple.wire.bin_prot import BOOL, INT, INT64, STRING, tuple_as
from ripple.wire.deltas import DeltaCodec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.delta.layout import Batch, Layout
    from ripple.schema.types import Schema
    from ripple.wire.codec import Codec

_KEYS: dict[type[types.FieldType], Codec[Any]] = {
    types.String: STRING,
    types.Int: INT,
    types.Int64: INT64,
    types.Bool: BOOL,
}


class ArrowRows:
    """The operations of :class:`ripple.wire.outbox.Rows` on batches of ``layout``.

    ``schema`` describes the same record for peers that take one delta at a time; a key of
    several fields goes to them as a tuple.
    """

    def __init__(self, layout: Layout, schema: Schema) -> None:
        self._layout = layout
        self._codec = DeltaCodec(schema)
        keys = [_KEYS[type(field.type)] for field in layout.key_fields]
        self._key: Codec[Any] = keys[0] if len(keys) == 1 else tuple_as(*keys)

    def count(self, rows: Batch) -> int:
        """Return the number of rows."""
        return int(rows.num_rows)

    def compose(self, older: Batch, newer: Batch) -> Batch:
        """Return the one batch that does what both do in turn."""
        return columns.compose(self._layout, older, newer)

    def part(self, rows: Batch, start: int, count: int) -> Batch:
        """Return some of the rows, without copying them."""
        return rows.slice(start, count)

    def body(self, rows: Batch) -> memoryview:
        """Return an Arrow IPC stream of the batch."""
        return memoryview(arrow.dumps(rows))

    def deltas(self, rows: Batch) -> Iterable[tuple[bytes, bytes]]:
        """Return each key and its delta in bin_prot, which knows no Final.

        It goes as what it means to a peer that never heard of it: a Set, so that nobody misses the
        last value, and a Remove, so that the row leaves the table.
        """
        return [
            (self._key.dumps(key), self._codec.dumps(one))
            for key, delta in convert.to_rows(self._layout, rows)
            for one in ((Set(delta.value), Remove()) if isinstance(delta, Final) else (delta,))
        ]
