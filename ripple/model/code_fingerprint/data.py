"""Values that are known by their content: plain ones, arrays, Arrow's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.sexp import Sexp
from ripple.model.code_fingerprint.place import entry

if TYPE_CHECKING:
    from ripple.model.code_fingerprint.form import Reading

_INLINE_BYTES = 256  # longer values stand as a digest
_TABULAR = (pa.RecordBatch, pa.Table)
_ARRAYS = (pa.Array, pa.ChunkedArray)
_TYPES = (pa.DataType, pa.Field, pa.Schema)
ARROW = (*_TABULAR, *_ARRAYS, *_TYPES, pa.Scalar)


def plain(reading: Reading, value: Any, place: str) -> Sexp | None:
    """Return the form of a value of Python's own plain types, None for any other."""
    kind = type(value)
    if kind is int:
        return hex(value)
    if value is None or value is ... or value is NotImplemented or kind is bool:
        return repr(value)
    if kind is float:
        return ["float", value.hex()]
    if kind is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if kind is str:
        return _text(reading, value, place)
    if kind is bytes:
        return ["bytes", blob(reading, value, place)]
    return None


def _text(reading: Reading, value: str, place: str) -> Sexp:
    encoded = value.encode("utf-8", "surrogatepass")
    return ["str", ascii(value) if len(encoded) <= _INLINE_BYTES else blob(reading, encoded, place)]


def blob(reading: Reading, value: bytes | bytearray | memoryview, place: str) -> Sexp:
    """Return bytes, or their length and digest."""
    size = memoryview(value).nbytes
    if not reading.affords("bytes", size, place):
        return ["beyond", str(size)]
    if size <= _INLINE_BYTES:
        return value.hex()
    return [str(size), hashlib.blake2b(value, digest_size=16).hexdigest()]


def sequence(reading: Reading, value: tuple[Any, ...], place: str) -> Sexp:
    """Return the form of a tuple."""
    return [type(value).__name__, *(reading.form(item, place) for item in value)]


def items(reading: Reading, value: list[Any], place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the items of a list."""
    if not reading.fits("values", len(value), place):
        yield place, ["list", str(len(value))]
        return
    yield place, ["list", *(reading.form(item, entry(place, at)) for at, item in enumerate(value))]


def pairs(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the items of a mapping, in its order, which code can see."""
    if not reading.fits("values", 2 * len(value), place):
        yield place, ["dict", str(len(value))]
        return
    forms: list[Sexp] = []
    for key, item in value.items():
        forms.append([reading.form(key, place), reading.form(item, entry(place, key))])
    yield place, ["dict", *forms]


def elements(reading: Reading, value: set[Any], place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the items of a set."""
    yield place, reading.set_form(value, place)


def content(reading: Reading, value: bytearray, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the contents of a bytearray."""
    yield place, ["bytearray", blob(reading, value, place)]


def scalar(reading: Reading, value: np.generic, place: str) -> Sexp:
    """Return the form of a NumPy scalar."""
    if value.dtype.hasobject:
        return ["scalar", str(value.dtype), reading.form(value.item(), place)]
    return ["scalar", str(value.dtype), value.tobytes().hex()]


def array(reading: Reading, value: Any, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield the contents of an array."""
    kind = str(value.dtype)
    about: list[Sexp] = [reading.form(type(value), place), kind, [str(n) for n in value.shape]]
    held = np.asarray(value)
    if held.dtype.hasobject or held.dtype.kind == "T":  # text of any length lies elsewhere
        if not reading.fits("values", held.size, place):
            yield place, ["array", *about]
            return
        content: Sexp = [reading.form(item, place) for item in held.ravel().tolist()]
    else:
        content = blob(reading, np.ascontiguousarray(held).view(np.uint8).data, place)
    yield place, ["array", *about, content]
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value)
        yield place, ["mask", blob(reading, np.ascontiguousarray(mask).view(np.uint8).data, place)]


def arrow(reading: Reading, value: Any, place: str) -> Sexp:
    """Return the form of a type, a scalar, an array or a table of Arrow."""
    if isinstance(value, _TYPES):
        return ["arrow", str(value)]
    if isinstance(value, pa.Scalar):
        return ["scalar", _column(reading, pa.repeat(value, 1), place)]
    if isinstance(value, _TABULAR):
        columns = [_column(reading, column, place) for column in value.columns]
        return ["arrow", str(value.schema), *columns]
    return _column(reading, value, place)


def _column(reading: Reading, column: Any, place: str) -> Sexp:
    of = column.type
    if not reading.fits("values", len(column), place):
        return ["arrow", str(of), str(len(column))]
    if pa.types.is_dictionary(of):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type):  # as Python's own, they would lose nanoseconds
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    elif _has_times(column.type):
        return ["arrow", str(of), reading.blind(place, "times within the values of an Arrow array")]
    return ["arrow", str(of), *(reading.form(item, place) for item in column.to_pylist())]


def _has_times(of: pa.DataType) -> bool:
    return pa.types.is_temporal(of) or any(
        _has_times(of.field(at).type) for at in range(of.num_fields)
    )
