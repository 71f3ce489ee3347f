"""The values in lists and maps of sources: their types, and their texts in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.text_columns import is_text
from ripple.model.schema.time_form import UNITS_NS, is_far
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Date,
    DateTime,
    Decimal,
    Float,
    Int,
    Int64,
    String,
    Uuid,
    WideDecimal,
)

WORDS: dict[type, str] = {
    String: "texts",
    Int: "integers",
    Int64: "integers",
    Float: "numbers",
    Bool: "truth values",
    Date: "dates",
    DateTime: "times",
    Decimal: "decimals",
    WideDecimal: "decimals",
    Uuid: "UUIDs",
    Bytes: "bytes",
}


def takes_items(arrow: pa.DataType, of: type) -> bool:
    """Tell whether values of a type of Arrow, in a list or a map, can become values of a type."""
    if kinds.is_dictionary(arrow):
        arrow = arrow.value_type
    if kinds.is_null(arrow):
        return True  # Arrow's type of lists without items
    if of is String:
        return is_text(arrow)
    if of is Bool:
        return bool(kinds.is_boolean(arrow))
    if of is Float:
        return bool(kinds.is_integer(arrow) or kinds.is_floating(arrow))
    # Of rp.Timestamp without a unit: a number of another one is an Int to its source.
    return bool(kinds.is_integer(arrow) or (of is Int64 and kinds.is_timestamp(arrow)))


def json_items(items: pa.Array) -> pa.Array | None:
    """Return values as texts of JSON, null for null; None where JSON writes a value otherwise."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    if kinds.is_string(items.type) or kinds.is_large_string(items.type):
        if pc.any(pc.match_substring_regex(items, r'["\\\x00-\x1f]')).as_py():
            return None  # letters with an escape
        return pc.binary_join_element_wise('"', items.cast(pa.string()), '"', "")
    if kinds.is_floating(items.type):
        if not pc.all(pc.is_finite(items)).as_py():
            return None
        texts = items.cast(pa.float64()).cast(pa.string())
        return pc.if_else(pc.equal(texts, "-0"), "-0.0", texts)  # which is an integer in JSON
    if kinds.is_timestamp(items.type):
        return _nanoseconds(items).cast(pa.string())
    if kinds.is_integer(items.type) or kinds.is_boolean(items.type):
        return items.cast(pa.string())
    return None


def _nanoseconds(times: pa.Array) -> pa.Array:
    """Return times as nanoseconds since 1970, null for one beyond 64 bits of them."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    units, ns = times.cast(pa.int64()), UNITS_NS[times.type.unit]
    far = pa.array(is_far(np.asarray(units.fill_null(0)), ns))
    return pc.multiply(pc.if_else(far, None, units), ns)


def list_texts(texts: pa.Array, lengths: Any, valid: pa.Array, opening: str, end: str) -> pa.Array:
    """Return the texts of lists, joined by commas. lengths: of each; valid: false for null."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), texts), ",")
    arrays = pc.binary_join_element_wise(opening, joined, end, "")
    return pc.if_else(valid, arrays, None)


def plain_item(item: Any) -> Any:
    """Return the Python value of a NumPy scalar. Raises TypeError for another object."""
    if isinstance(item, (np.integer, np.floating, np.bool_)):
        return item.item()
    raise TypeError
