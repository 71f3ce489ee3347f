"""Values of Kafka Connect and Debezium in JSON as texts: by the types that their schema names."""

from __future__ import annotations

import base64
import decimal
from typing import TYPE_CHECKING, Any

from ripple.model.schema.logical.columns import text_of_number
from ripple.model.schema.types import DECIMALS, Date, DateTime, Logical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.schema.types import List

_TIMES_NS = {
    "org.apache.kafka.connect.data.Timestamp": 1_000_000,
    "io.debezium.time.Timestamp": 1_000_000,
    "io.debezium.time.MicroTimestamp": 1000,
    "io.debezium.time.NanoTimestamp": 1,
}
_DATES = ("org.apache.kafka.connect.data.Date", "io.debezium.time.Date")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_SCALE_MAX = 1000
_EXACT = decimal.Context(prec=2 * _SCALE_MAX)


def types_after(schema: Any) -> dict[str, dict[str, Any]]:
    """Return the types of the fields of ``after`` in an envelope's schema; none without one."""
    after = _members(schema).get("after")
    return {} if after is None else _members(after)


def as_texts(
    row: Mapping[str, Any],
    logical: Mapping[str, Logical | List],
    types: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return a row with texts for values of logical types that are none; others are unchanged.

    types: of its fields, in the schema of Kafka Connect. Raises ValueError for a time as a number
    without its unit, and for a date where the schema has times, or the reverse.
    """
    return {
        name: _text(name, value, kind, types.get(name, {}))
        if isinstance(kind := logical.get(name), Logical)
        else value
        for name, value in row.items()
    }


def _text(field: str, value: Any, kind: Logical, of: Mapping[str, Any]) -> Any:
    name, is_whole = str(of.get("name")), isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, Date) and is_whole:
        if name in _TIMES_NS:
            raise ValueError(f"{field} is a time ({name}): declare a datetime")
        return text_of_number(value, kind)  # days, in all of their types of dates
    if isinstance(kind, DateTime) and is_whole:
        if name in _DATES:
            raise ValueError(f"{field} is a date ({name}): declare a datetime.date")
        if name not in _TIMES_NS:
            raise ValueError(
                f"{field} is a number, and no schema in the envelope says its unit: let Debezium "
                "write schemas (value.converter.schemas.enable=true), or declare an int"
            )
        return text_of_number(value * _TIMES_NS[name], kind)
    if isinstance(kind, DECIMALS):
        if name == _DECIMAL and isinstance(value, str):
            parameters = of.get("parameters")
            return _decimal(value, parameters.get("scale") if isinstance(parameters, dict) else 0)
        if isinstance(value, dict) and value.keys() == {"scale", "value"}:  # VariableScaleDecimal
            return _decimal(value["value"], value["scale"])
    return value


def _decimal(value: Any, scale: Any) -> Any:
    """Return the digits of units in base64; an invalid value unchanged."""
    try:
        units, digits = base64.b64decode(value, validate=True), int(scale)
    except (TypeError, ValueError, OverflowError):
        return value
    if len(units) > _SCALE_MAX // 4 or not 0 <= digits <= _SCALE_MAX:
        return value
    number = decimal.Decimal(int.from_bytes(units, "big", signed=True))
    return format(number.scaleb(-digits, _EXACT), "f")


def _members(schema: Any) -> dict[str, dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    listed = fields if isinstance(fields, list) else []
    members = (one for one in listed if isinstance(one, dict))
    return {one["field"]: one for one in members if isinstance(one.get("field"), str)}
