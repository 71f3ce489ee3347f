"""Columns for Deephaven's clients: types, nulls, buffers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ripple.client.flight.errors import FlightError, Why

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_INSTANT, _DATE, _TIME = pa.timestamp("ns", "UTC"), pa.date64(), pa.time64("ns")
# The clients' types: Deephaven's name, and the value that stands for null.
_KNOWN: dict[pa.DataType, tuple[str, float | None]] = {
    pa.int8(): ("byte", -(1 << 7)),
    pa.int16(): ("short", -(1 << 15)),
    pa.int32(): ("int", -(1 << 31)),
    pa.int64(): ("long", -(1 << 63)),
    pa.float32(): ("float", float(-np.finfo(np.float32).max)),
    pa.float64(): ("double", float(-np.finfo(np.float64).max)),
    pa.bool_(): ("java.lang.Boolean", None),
    pa.string(): ("java.lang.String", None),
    _INSTANT: ("java.time.Instant", -(1 << 63)),
    _DATE: ("java.time.LocalDate", -(1 << 63)),
    _TIME: ("java.time.LocalTime", -(1 << 63)),
}
# Keywords of Java and of Deephaven's formulas, which cannot be names of columns.
_WORDS = """
    abstract assert boolean break byte case catch char class const continue default do double
    else enum extends false final finally float for goto i if ii implements import in instanceof
    int interface k long native new not null package private protected public return short static
    strictfp super switch synchronized this throw throws transient true try void volatile while _
"""
_RESERVED = frozenset(_WORDS.split())
# Clients take unsigned 16 bits for a character.
_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


class Parts(NamedTuple):
    """A column of a record batch: nodes of (length, nulls), and buffers without padding."""

    nodes: tuple[tuple[int, int], ...]
    buffers: tuple[Any, ...]

    @property
    def rows(self) -> int:
        """How many values there are."""
        return self.nodes[0][0]

    @property
    def nbytes(self) -> int:
        """How long the buffers are, together."""
        return sum(len(one) for one in self.buffers)


def wire_type(kind: pa.DataType) -> pa.DataType:
    """Return the client's type for a type: text if clients do not know it."""
    if kind in _KNOWN:
        return kind
    if kind in _WIDER:
        return _WIDER[kind]
    if pt.is_timestamp(kind):
        return _INSTANT
    if pt.is_date(kind):
        return _DATE
    if pt.is_time(kind):
        return _TIME
    if _is_list(kind) and not _is_list(kind.value_type):
        return pa.list_(wire_type(kind.value_type))
    return pa.string()


def check_known(schema: pa.Schema, columns: Collection[int] | None) -> None:
    """Refuse columns that clients can only have as text. columns: by number, None for all.

    Raises FlightError.
    """
    for place, field in enumerate(schema):
        kind = wire_type(field.type)
        inner = kind.value_type if pt.is_list(kind) else kind
        its = field.type.value_type if pt.is_list(kind) else field.type
        if (columns is None or place in columns) and pt.is_string(inner) and not _is_text(its):
            raise FlightError(
                Why.INTERNAL,
                f"the column {field.name!r} ({field.type}) can only be sent as text, which "
                "ThrowError excludes: leave it out, or ask for Stringify",
            )


def wire_schema(schema: pa.Schema, *, as_list: bool = False) -> pa.Schema:
    """Return a table's columns in the clients' types. as_list: each as one list."""
    fields: dict[str, pa.Field] = {}
    for field in schema:
        kind, name = wire_type(field.type), _legal(field.name)
        while name in fields or (name != field.name and name in schema.names):
            name += "_"
        shown = pa.list_(kind) if as_list else kind
        fields[name] = pa.field(name, shown, metadata=_described(kind))
    return pa.schema(fields.values())


def wire_array(array: pa.Array) -> pa.Array:
    """Return values in the clients' type."""
    kind = wire_type(array.type)
    if array.type == kind:
        return array
    if pt.is_string(kind) and (pt.is_nested(array.type) or pt.is_binary(array.type)):
        return pa.array([_as_text(value) for value in array.to_pylist()], kind)
    if pt.is_list(kind) and pt.is_string(kind.value_type):
        items = wire_array(array.flatten())
        lengths = np.nan_to_num(array.value_lengths().to_numpy(zero_copy_only=False)).astype(int)
        offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
        return pa.ListArray.from_arrays(offsets, items, kind, mask=array.is_null())
    return array.cast(kind)


def parts_of(array: pa.Array, *, sentinels: bool, as_list: bool = False) -> Parts:
    """Return a column of a client's type. sentinels: nulls of numbers are values.

    A column without rows has empty buffers: clients in Java do not skip their contents.
    """
    inner = _parts(array, sentinels=sentinels)
    if not as_list:
        return inner
    offsets = np.array([0, len(array)], np.int32).tobytes()
    return Parts(((1, 0), *inner.nodes), (b"", offsets, *inner.buffers))


def _parts(array: pa.Array, *, sentinels: bool) -> Parts:
    kind, rows = array.type, len(array)
    null = _KNOWN[kind][1] if kind in _KNOWN else None
    numbers = null is not None
    nulls = 0 if numbers and sentinels else array.null_count
    node = ((rows, nulls),)
    valid: Any = _bitmap(array.is_valid()) if nulls else b""
    if numbers:
        return Parts(node, (valid, _numbers(array, null)))
    if pt.is_boolean(kind):
        return Parts(node, (valid, _bitmap(array.fill_null(False)) if rows else b""))
    if not rows:
        rest = _parts(array.values[:0], sentinels=sentinels) if pt.is_list(kind) else None
        return Parts(node, (b"", b"", b"")) if rest is None else _joined(node, b"", b"", rest)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + rows + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    near = (offsets - first).tobytes()
    if pt.is_list(kind):
        rest = _parts(array.values[first:last], sentinels=sentinels)
        return _joined(node, valid, near, rest)
    data = array.buffers()[2]
    return Parts(node, (valid, near, b"" if data is None else memoryview(data)[first:last]))


def _joined(node: Any, valid: Any, offsets: Any, items: Parts) -> Parts:
    return Parts((*node, *items.nodes), (valid, offsets, *items.buffers))


def _numbers(array: pa.Array, null: float | None) -> Any:
    if not len(array):
        return b""
    if pt.is_temporal(array.type):
        array = array.view(pa.int64())
    if array.null_count:
        array = array.fill_null(pa.scalar(null, array.type))
    width = array.type.bit_width // 8
    data = memoryview(array.buffers()[1]).cast("B")
    return data[array.offset * width : (array.offset + len(array)) * width]


def _bitmap(array: pa.Array) -> bytes:
    return np.packbits(array.to_numpy(zero_copy_only=False), bitorder="little").tobytes()


def _legal(name: str) -> str:
    """Return a valid name of a column in Deephaven: ``class`` becomes ``class_``."""
    legal = "".join(char if f"a{char}".isidentifier() else "_" for char in name)
    if not legal.isidentifier():
        legal = f"_{legal}"
    return f"{legal}_" if legal in _RESERVED else legal


def _described(kind: pa.DataType) -> dict[str, str]:
    """Return a field's metadata for Deephaven."""
    if not pt.is_list(kind):
        return {"deephaven:type": _KNOWN[kind][0]}
    item = _KNOWN[kind.value_type][0]
    return {"deephaven:type": f"{item}[]", "deephaven:componentType": item}


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value, default=str, ensure_ascii=False)


def nbytes_of(arrays: Sequence[pa.Array]) -> int:
    """Return the approximate length of these columns' buffers."""
    return sum(array.nbytes for array in arrays)
