"""Identity of records: a hash of 64 bits over their fields, bit for bit.

Nulls are hashed too, and each field by its position: 0.0 is not -0.0, "ab" and "c" are not "a" and
"bc", and [null] is not [].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.errors import SchemaError
from ripple.core.hashing import mix_each, mix_words, xxh64_each

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

_NULL, _VALUE = np.uint64(0), np.uint64(1)


def identities_of(records: pa.RecordBatch, names: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return the hash of each record over the named fields, in their order."""
    found = np.zeros(records.num_rows, np.uint64)
    for name in names:
        mix_each(found, _of(records.column(name)))
    return found.view(np.int64)


def mix_in(hashes: Hashes, column: pa.Array) -> None:
    """Fold the hash of each value of a column into its row's: all NaNs of floats are the same."""
    are_floats = kinds.is_float64(column.type)
    if not are_floats and not kinds.is_int64(column.type):
        mix_each(hashes, _of(column))
        return
    valid = _valid(column).view(np.uint8) if column.null_count else None
    mix_words(hashes, _values_of(column), valid, are_floats=are_floats)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid(), np.bool_)


def _of(column: pa.Array) -> Hashes:
    """Return the hash of each value of a column."""
    values = _values_of(column)
    if not column.null_count:
        found = np.full(len(column), _VALUE)
    else:
        valid = _valid(column)
        found, values = np.where(valid, _VALUE, _NULL), np.where(valid, values, _NULL)
    mix_each(found, values)
    return found


def _values_of(column: pa.Array) -> Hashes:
    """Return a hash of each value; undefined for nulls."""
    kind = column.type
    if kinds.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0)).astype(np.uint64)
    if kinds.is_int64(kind) or kinds.is_float64(kind):
        bits = np.frombuffer(column.buffers()[1] or b"", np.uint64)
        return bits[column.offset : column.offset + len(column)]
    if kinds.is_string(kind):
        return _of_text(column)
    if kinds.is_list(kind):
        return _of_lists(column)
    if kinds.is_struct(kind):
        found = np.zeros(len(column), np.uint64)
        for part in column.flatten():
            mix_each(found, _of(part))
        return found
    raise SchemaError(f"records cannot be identified by a column of {kind}")


def _of_text(column: pa.Array) -> Hashes:
    found = np.zeros(len(column), np.uint64)
    if len(column):
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        xxh64_each(ends, np.frombuffer(data or b"", np.uint8), found)
    return found


def _of_lists(column: pa.Array) -> Hashes:
    """Mix the members of each list, of all lists the first ones first."""
    lengths = np.asarray(column.value_lengths().fill_null(0), np.int64)
    members = _of(column.flatten())  # those of nulls are left out
    order = np.argsort(-lengths, kind="stable")  # so the lists that have a member come first
    starts = (np.cumsum(lengths) - lengths)[order]
    mixed = lengths[order].astype(np.uint64)
    most = int(lengths.max(initial=0))
    longer = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(most), side="right")
    for at, several in enumerate(longer.tolist()):
        mix_each(mixed[:several], members[starts[:several] + at])
    found = np.empty_like(mixed)
    found[order] = mixed
    return found
