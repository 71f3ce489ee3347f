"""Texts of JSON: arrays and objects of a source, in a field of text."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.json_form import JsonForm
from ripple.model.schema.logical.items import plain_item
from ripple.model.schema.logical.objects import ObjectArrays
from ripple.model.schema.text_columns import is_text
from ripple.model.schema.types import Bytes, Date, DateTime, Uuid

if TYPE_CHECKING:
    from ripple.model.schema.document import Json


class JsonTextRule(ObjectArrays):
    """The rule of such texts."""

    word = "an array or an object of JSON"
    arrow = pa.string()
    avro: ClassVar[dict[str, Json]] = {"type": "string"}
    json: ClassVar[dict[str, Json]] = {"type": "string"}
    bounds = (0, 0)  # of numbers; there are none

    def form(self, form: str | None, zone: str | None) -> JsonForm:  # noqa: ARG002 - of all rules
        return JsonForm()

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_nested(arrow)) and _is_json(arrow)

    def stored(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema.logical.texts import written  # noqa: PLC0415 - which asks the rules

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of equal keys the last one counts
            values = written(column).to_pylist(maps_as_pydicts="lossy")
        return pa.array(
            [None if one is None else _dumped(one, _item_of_arrow) for one in values], pa.string()
        )

    def shown(self, column: pa.Array) -> pa.Array:
        return column

    def number(self, value: Any) -> str | None:
        return value if isinstance(value, str) else None

    def value(self, number: str) -> str:
        return number

    def text(self, value: Any) -> str | None:
        if not isinstance(value, (Mapping, list, tuple)):
            return None
        try:
            return _dumped(value)
        except (TypeError, ValueError, RecursionError):
            return None

    def written(self, number: str) -> str:
        return number

    def texts(self, column: pa.Array) -> pa.Array:
        return column


def _dumped(value: Any, item: Callable[[Any], Any] | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=item or _item)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # a half of a pair, which only an escape can be
        return json.dumps(value, separators=(",", ":"), default=item or _item)
    return text


def _item(item: Any) -> Any:
    """Return an object's form in lines of JSON. Raises TypeError for one without."""
    from ripple.model.schema.logical.rule import rule_of  # noqa: PLC0415 - which asks this rule

    if isinstance(item, decimal.Decimal) and item.is_finite():
        return f"{item:f}"
    for kind in (DateTime(), Date(), Uuid(), Bytes()):
        rule = rule_of(kind)
        number = rule.number(item)
        if number is not None:
            return rule.written(number)
    return plain_item(item)


def _item_of_arrow(item: Any) -> Any:
    if not isinstance(item, dt.datetime):
        return _item(item)
    item = item.replace(tzinfo=dt.UTC) if item.tzinfo is None else item
    try:
        return _item(item)
    except TypeError:  # beyond the nanoseconds of 64 bits
        return item.isoformat()


_LEAVES = (
    kinds.is_null, kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_decimal,
    is_text, kinds.is_timestamp, kinds.is_date, kinds.is_binary, kinds.is_large_binary,
    kinds.is_fixed_size_binary, kinds.is_binary_view,
)  # fmt: skip


def _is_json(kind: pa.DataType) -> bool:
    if kinds.is_map(kind):
        is_key = kinds.is_integer(kind.key_type) or is_text(kind.key_type)
        return is_key and _is_json(kind.item_type)
    if kinds.is_dictionary(kind):
        return _is_json(kind.value_type)
    if kinds.is_struct(kind):
        return all(_is_json(field.type) for field in kind)
    if kinds.is_nested(kind):
        return not kinds.is_union(kind) and _is_json(kind.value_type)
    return any(is_one(kind) for is_one in _LEAVES)
