"""Maps: objects of JSON in canonical form, as texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.forms import need_no_form
from ripple.model.schema.logical.items import (
    WORDS,
    json_items,
    list_texts,
    plain_item,
    takes_items,
)
from ripple.model.schema.logical.objects import ObjectArrays
from ripple.model.schema.text_columns import bits, is_text, valid_in
from ripple.model.schema.types import Bool, Float, Int, Int64, String

if TYPE_CHECKING:
    from ripple.model.schema.document import Json
    from ripple.model.schema.map_form import MapForm
    from ripple.model.schema.types import Dict

_ARROW: dict[type, pa.DataType] = {
    String: pa.string(),
    Int: pa.int64(),
    Int64: pa.int64(),
    Float: pa.float64(),
    Bool: pa.bool_(),
}
_WORDS = {String: "text", Int: "int", Int64: "int", Float: "float", Bool: "bool"}
_AVRO = {String: "string", Int: "long", Int64: "long", Float: "double", Bool: "boolean"}
_INVALID = "[]"  # the text of a map that is none of the type


class MapRule(ObjectArrays):
    """The rule of one type of maps."""

    arrow = pa.string()
    json: ClassVar[dict[str, Json]] = {"type": "object"}
    bounds = (0, 0)  # of numbers; there are none

    def __init__(self, kind: Dict) -> None:
        self._kind = kind
        self.word = word_of_map(kind)
        self.avro: dict[str, Json] = {"type": "map", "values": _AVRO[type(kind.of)]}

    def form(self, form: str | None, zone: str | None) -> MapForm:
        need_no_form("a map", form, zone)
        from ripple.model.schema.map_form import MapForm  # noqa: PLC0415 - few have maps

        return MapForm(self._kind)

    def takes(self, arrow: pa.DataType) -> bool:
        if not kinds.is_map(arrow):
            return False
        return is_text(arrow.key_type) and takes_items(arrow.item_type, type(self._kind.of))

    def source_texts(self, column: pa.Array) -> pa.Array:
        """Return a column that ``takes`` accepts as texts for the form."""
        ends = np.asarray(column.offsets)
        begin, length = int(ends[0]), int(ends[-1] - ends[0])
        keys = json_items(column.keys.slice(begin, length))
        values = json_items(column.items.slice(begin, length))
        if keys is not None and values is not None:
            members = _joined(keys, values)
            return list_texts(members, np.diff(ends), column.is_valid(), "{", "}")
        pairs = (None if one is None else self.text(dict(one)) for one in column.to_pylist())
        return pa.array(pairs, pa.string())

    def stored(self, column: pa.Array) -> pa.Array:
        return self.form(None, None).parsed(self.source_texts(column))[0]

    def shown(self, column: pa.Array) -> pa.Array:
        return column

    def number(self, value: Any) -> str | None:
        from ripple.model.schema.map_form import canonical_text  # noqa: PLC0415 - few have maps
        from ripple.model.schema.values import Misfit  # noqa: PLC0415 - which asks the rules

        try:
            return canonical_text(value, self._kind.of)
        except (Misfit, ValueError):
            return None

    def value(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(number)
        return found

    def text(self, value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return None
        if not all(isinstance(name, str) for name in value):
            return _INVALID
        try:
            return json.dumps(dict(value), default=plain_item)
        except (TypeError, ValueError, RecursionError):
            return _INVALID

    def written(self, number: str) -> str:
        return number

    def texts(self, column: pa.Array) -> pa.Array:
        return column


def kind_word(kind: Dict) -> str:
    """Return the kind of the values, as ``map_columns.values_in`` takes it."""
    return _WORDS[type(kind.of)]


def map_type(kind: Dict) -> pa.DataType:
    """Return Arrow's type of maps for a type of ours."""
    return pa.map_(pa.string(), pa.field("value", _ARROW[type(kind.of)], nullable=False))


def map_column(column: pa.Array, kind: Dict) -> pa.Array:
    """Return stored maps as a column of Arrow's maps, each in the order of its keys."""
    from ripple.model.schema.map_columns import keys_in, members_of, values_in  # noqa: PLC0415 - few have maps

    members, arrow = members_of(column), map_type(kind)
    values = values_in(members.values, kind_word(kind))
    ends = np.concatenate([[0], np.cumsum(members.counts)]).astype(np.int32)
    pairs = pa.StructArray.from_arrays(
        [keys_in(members), values], fields=[arrow.key_field, arrow.item_field]
    )
    buffers = [bits(valid_in(column)), pa.py_buffer(ends)]
    return pa.Array.from_buffers(arrow, len(column), buffers, children=[pairs])


def word_of_map(kind: Dict) -> str:
    """Return how messages call a map."""
    return f"a map of {WORDS[type(kind.of)]}"


def _joined(keys: pa.Array, values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    return pc.binary_join_element_wise(keys, pc.fill_null(values, "null"), ":")


def source_texts(column: pa.Array, kind: Dict) -> pa.Array:
    """Return a column of maps as texts for the form; one of texts unchanged."""
    rule = MapRule(kind)
    return rule.source_texts(column) if rule.takes(column.type) else column
