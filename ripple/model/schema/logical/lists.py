"""Lists of a source: their columns and values, and their texts, arrays of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.items import (
    WORDS,
    json_items,
    list_texts,
    plain_item,
    takes_items,
)
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.text_columns import is_text
from ripple.model.schema.typed_texts import marked
from ripple.model.schema.types import (
    Bytes,
    DateTime,
    FieldType,
    HexBytes,
    List,
    Logical,
    PatternDate,
    Uuid,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.schema.types import Field

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
        self._of = kind.of
        self.word = word_of_list(kind)

    def takes(self, arrow: pa.DataType) -> bool:
        """Tell whether items of such columns can become items of the field."""
        if not any(is_one(arrow) for is_one in _LISTS):
            return False
        if isinstance(self._of, Logical):
            return _takes(arrow.value_type, self._of)
        return takes_items(arrow.value_type, type(self._of))

    def text(self, value: Any) -> str | None:
        """Return the array of a list, a tuple or a flat array; items are judged later."""
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufOTU":
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            return None
        if isinstance(self._of, Logical):
            value = [_text_of(item, self._of) for item in value]
        try:
            return json.dumps(value, default=plain_item)
        except (TypeError, ValueError, RecursionError):
            return "[null]"  # an invalid item

    def texts(self, column: pa.Array) -> pa.Array:
        """Return a column that ``takes`` accepts as texts."""
        joined = _joined(column, self._of) if len(column) else None
        if joined is not None:
            return joined
        made = (None if one is None else self.text(one) for one in column.to_pylist())
        return pa.array(made, pa.string())


def _takes(arrow: pa.DataType, of: Logical) -> bool:
    """Tell whether items of a type of Arrow are values of a logical type, or texts of such."""
    if kinds.is_dictionary(arrow):
        arrow = arrow.value_type
    return bool(kinds.is_null(arrow) or is_text(arrow) or rule_of(of).takes(arrow))


def _text_of(item: Any, of: Logical) -> Any:
    """Return an item as its text. A float is no decimal, though a number of JSON is one."""
    text = rule_of(of).text(item)
    return item if text is None and isinstance(item, str) else text


def item_texts(items: pa.Array, of: Logical) -> pa.Array:
    """Return items of a type that ``_takes`` accepts as texts for the form of their type."""
    if kinds.is_dictionary(items.type):
        items = items.dictionary_decode()
    if is_text(items.type) or kinds.is_null(items.type):
        return items.cast(pa.string())
    rule = rule_of(of)
    if isinstance(of, (DateTime, Uuid, Bytes)):
        return rule.texts(rule.stored(items))
    texts = items.cast(pa.string())
    return marked(texts) if isinstance(of, PatternDate) else texts


def _joined(column: pa.Array, of: FieldType) -> pa.Array | None:
    """Return a column of lists as arrays of JSON; None where ``text`` has to write them."""
    if not (kinds.is_list(column.type) or kinds.is_large_list(column.type)):
        return None
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    items = column.flatten()
    texts = json_items(item_texts(items, of) if isinstance(of, Logical) else items)
    if texts is None:
        return None
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    return list_texts(pc.fill_null(texts, "null"), lengths, column.is_valid(), "[", "]")


def word_of_list(kind: List) -> str:
    """Return how messages call a list of a source."""
    of: type = Bytes if isinstance(kind.of, HexBytes) else type(kind.of)
    return f"a list of {WORDS.get(of, 'values')}"


def is_read(kind: FieldType) -> bool:
    """Tell whether a source reads a field of the type as a list."""
    return isinstance(kind, List) and type(kind.of) in WORDS


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
