"""Values that are JSON objects, by the compiled parser of JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.connectors.files.json.parser import JsonParser
from ripple.connectors.files.json.source import screened_rows
from ripple.connectors.formats.contract import shown_of
from ripple.connectors.record_shape import value_type

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.batch import Batch

_VALUE_BYTES_MAX = 1 << 30  # brokers have a limit of their own


class JsonValues:
    """Each value is one object, over as many lines as it likes; otherwise as lines of JSON are."""

    at_once = True

    def __init__(self, shape: RecordShape) -> None:
        self.shape = shape
        kinds = [(member.name, value_type(member)[0]) for member in shape.schema.fields]
        self._parser = JsonParser(kinds, _VALUE_BYTES_MAX, dict(shape.paths), *shape.by_source_text)
        self._names = [*(name for name, _ in kinds), *self._parser.objects]

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values."""
        ends, data = buffers_of(values)
        arrays, refused = self._parser.parse_values(data, ends)
        shown = shown_of(values)
        return screened_rows(arrays, self._names, self.shape, refused, offset=0, shown=shown)


def buffers_of(values: pa.Array) -> tuple[np.ndarray, memoryview]:
    """Return the positions of binary values, n + 1 ends (int32), and the bytes."""
    _, ends, data = values.buffers()
    first, count = values.offset, len(values) + 1
    held = memoryview(data).cast("B") if data is not None and data.size else memoryview(b"")
    return np.frombuffer(ends, np.int32)[first : first + count], held
