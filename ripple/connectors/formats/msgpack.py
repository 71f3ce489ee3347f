"""Values that are maps of MessagePack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.connectors.formats.contract import shown_of
from ripple.connectors.formats.rows import batch_of_rows
from ripple.core.extras import needed

with needed("msgpack", "format=msgpack of a kafka: URI"):
    import msgspec

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.batch import Batch

NOT_ONE = "not a MessagePack map"


class MsgpackValues:
    """Each value is one map by the names of fields; members that no field has are ignored."""

    at_once = False

    def __init__(self, shape: RecordShape) -> None:
        self.shape = shape
        self._decode = msgspec.msgpack.Decoder().decode

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values."""
        rows: list[Mapping[str, Any]] = []
        refused: dict[int, str] = {}
        for value in values.to_pylist():
            try:
                row = self._decode(value)
            except (ValueError, RecursionError, msgspec.MsgspecError):
                row = None
            if not isinstance(row, dict):
                refused[len(rows)] = NOT_ONE
                row = {}
            rows.append(row)
        return batch_of_rows(rows, refused, self.shape, shown_of(values))
