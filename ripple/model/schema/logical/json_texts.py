"""Texts of JSON: what a source has as an array or an object, in a field of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.json_form import JsonForm
from ripple.model.schema.logical.items import plain_item
from ripple.model.schema.logical.objects import ObjectArrays

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
        return bool(kinds.is_nested(arrow))

    def stored(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema.logical.texts import written  # noqa: PLC0415 - which asks the rules

        values = written(column).to_pylist(maps_as_pydicts="strict")
        return pa.array([None if one is None else _dumped(one) for one in values], pa.string())

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


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain_item)
