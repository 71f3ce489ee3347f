"""Records divided among partitions as Kafka's default partitioner divides their keys.

The bytes of a key are those of Kafka's own serializers: UTF-8 for a string, eight bytes big-endian
for an integer or a float (IEEE 754, so 0.0 and -0.0 differ), one byte 0 or 1 for a truth value. A
key of several columns has no form in Kafka; ours is each column's bytes after their length in four
bytes, big-endian.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.errors import SchemaError
from ripple.core.hashing import partitions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def partitioned(
    records: pa.RecordBatch, key: Sequence[str], partitions: int
) -> list[tuple[int, pa.RecordBatch]]:
    """Return (partition, its records in their order) for the partitions that have some, ascending.

    Raises SchemaError when a key column is missing, of another type, or none somewhere.
    """
    order, parts = in_order(partition_numbers(records, key, partitions))
    ordered = records.take(pa.array(order))
    return [(number, ordered.slice(start, count)) for number, start, count in parts]


def partition_numbers(
    records: pa.RecordBatch, key: Sequence[str], partitions: int
) -> npt.NDArray[np.int32]:
    """Return the partition, from 0 to ``partitions`` - 1, of each row."""
    if not key or partitions < 1:
        raise SchemaError(f"{len(key)} key columns and {partitions} partitions: need 1 or more")
    if not records.num_rows:
        return np.empty(0, np.int32)
    return numbers_of(key_bytes(records, key), partitions)


def numbers_of(keys: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Return the partition of each key, given as its bytes: binary, and none of them null."""
    numbers = np.zeros(len(keys), np.int32)
    if len(keys):
        _, offsets, data = keys.buffers()
        ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
        partitions_of(ends, np.frombuffer(data or b"", np.uint8), numbers, partitions)
    return numbers


def in_order(
    numbers: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.intp], list[tuple[int, int, int]]]:
    """Return the rows grouped by partition, each group in row order, and the groups' bounds.

    The latter as (partition, where its rows begin, how many), ascending, without empty ones.
    """
    order = np.argsort(numbers, kind="stable")
    present, starts, counts = np.unique(numbers[order], return_index=True, return_counts=True)
    return order, list(zip(present.tolist(), starts.tolist(), counts.tolist(), strict=True))


def key_bytes(records: pa.RecordBatch, key: Sequence[str]) -> pa.Array:
    """Return the bytes of each row's key as a binary array."""
    columns = [_column_bytes(records, name) for name in key]
    if len(columns) == 1:
        return columns[0]
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    parts: list[pa.Array | pa.Scalar] = []
    for column in columns:
        lengths = pc.binary_length(column).to_numpy(zero_copy_only=False)
        parts += [_fixed(lengths.astype(">i4")), column]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _column_bytes(records: pa.RecordBatch, name: str) -> pa.Array:
    if name not in records.schema.names:
        raise SchemaError(f"no key column {name!r}: the records have {records.schema.names}")
    column = records.column(name)
    if column.null_count:
        raise SchemaError(f"key column {name!r} is none in {column.null_count} records")
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        return column.cast(pa.binary())
    if kinds.is_boolean(column.type):
        return _fixed(column.to_numpy(zero_copy_only=False).astype("u1"))
    if kinds.is_integer(column.type) and column.type != pa.uint64():
        return _fixed(column.to_numpy(zero_copy_only=False).astype(">i8"))
    if kinds.is_floating(column.type):
        return _fixed(column.to_numpy(zero_copy_only=False).astype(">f8"))
    raise SchemaError(
        f"key column {name!r} is {column.type}: a key is text, an integer, a float or a truth value"
    )


def _fixed(values: np.ndarray) -> pa.Array:
    """Return each value's own bytes as a binary array."""
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)
