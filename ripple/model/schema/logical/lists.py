"""Lists of a source: their columns and values, and their texts, arrays of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import (
    Bool,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    String,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.schema.types import Field

_WORDS: dict[type, str] = {
    String: "texts",
    Int: "integers",
    Int64: "integers",
    Float: "numbers",
    Bool: "truth values",
}


_LISTS = (
    kinds.is_list,
    kinds.is_large_list,
    kinds.is_fixed_size_list,
    kinds.is_list_view,
    kinds.is_large_list_view,
)


class TextReading(Protocol):
    """The reading of a type that a source reads by its texts."""

    word: str

    def takes(self, arrow: pa.DataType) -> bool:
        """Tell whether columns of an Arrow type hold such values, and not texts of them."""

    def text(self, value: Any) -> str | None:
        """Return the text of a Python value, for its form; None for a value of another type."""


class ListReading:
    """The reading of lists."""

    def __init__(self, kind: List) -> None:
        self._of = type(kind.of)
        self.word = word_of_list(kind)

    def takes(self, arrow: pa.DataType) -> bool:
        """Tell whether items of such columns can become items of the field."""
        if not any(is_one(arrow) for is_one in _LISTS):
            return False
        of = arrow.value_type
        if kinds.is_dictionary(of):
            of = of.value_type
        if kinds.is_null(of):
            return True  # Arrow's type of lists without items
        if self._of is String:
            return bool(
                kinds.is_string(of) or kinds.is_large_string(of) or kinds.is_string_view(of)
            )
        if self._of is Bool:
            return bool(kinds.is_boolean(of))
        return bool(kinds.is_integer(of) or (self._of is Float and kinds.is_floating(of)))

    def text(self, value: Any) -> str | None:
        """Return the array of a list, a tuple or a flat array; items are judged later."""
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufOTU":
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            return None
        try:
            return json.dumps(value, default=_plain)
        except (TypeError, ValueError, RecursionError):
            return "[null]"  # an invalid item

    def texts(self, column: pa.Array) -> pa.Array:
        """Return a column that ``takes`` accepts as texts."""
        joined = _joined(column) if len(column) else None
        if joined is not None:
            return joined
        made = (None if one is None else self.text(one) for one in column.to_pylist())
        return pa.array(made, pa.string())


def _joined(column: pa.Array) -> pa.Array | None:
    """Return the arrays of JSON of a column of lists; None for kinds and values of others."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    if not (kinds.is_list(column.type) or kinds.is_large_list(column.type)):
        return None
    items = column.flatten()
    if kinds.is_string(items.type) or kinds.is_large_string(items.type):
        if pc.any(pc.match_substring_regex(items, r'["\\\x00-\x1f]')).as_py():
            return None  # letters with an escape
        texts = pc.binary_join_element_wise('"', items.cast(pa.string()), '"', "")
    elif kinds.is_floating(items.type):
        if not pc.all(pc.is_finite(items)).as_py():
            return None
        texts = items.cast(pa.float64()).cast(pa.string())
        texts = pc.if_else(pc.equal(texts, "-0"), "-0.0", texts)  # which is an integer in JSON
    elif kinds.is_integer(items.type) or kinds.is_boolean(items.type):
        texts = items.cast(pa.string())
    else:
        return None
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = np.concatenate([[0], np.cumsum(np.asarray(lengths))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(ends), pc.fill_null(texts, "null"))
    arrays = pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")
    return pc.if_else(column.is_valid(), arrays, None) if column.null_count else arrays


def _plain(item: Any) -> Any:
    """Return the Python value of one of NumPy. Raises TypeError for others."""
    if isinstance(item, (np.integer, np.floating, np.bool_)):
        return item.item()
    raise TypeError


def word_of_list(kind: List) -> str:
    """Return how messages call a list of a source."""
    return f"a list of {_WORDS.get(type(kind.of), 'values')}"


def is_read(kind: FieldType) -> bool:
    """Tell whether a source reads a field of the type as a list."""
    return isinstance(kind, List) and type(kind.of) in _WORDS


def read_by_text(fields: Iterable[Field]) -> dict[str, Logical | List]:
    """Return the fields of logical types and of lists, by name; optional ones too."""
    found = {field.name: bare_type(field.type) for field in fields}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, Logical) or (isinstance(kind, List) and is_read(kind))
    }


def reading_of(kind: Logical | List) -> TextReading:
    """Return the reading of a type."""
    return rule_of(kind) if isinstance(kind, Logical) else ListReading(kind)
