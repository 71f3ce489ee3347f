"""Whether a topic has the fields of a record, in types that stand for the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.coercion import check_columns
from ripple.connectors.record_shape import arrow_schema_of
from ripple.core.errors import SchemaError
from ripple.model.schema.nested import flattened
from ripple.model.schema.types import (
    DECIMALS,
    PRECISION_MAX,
    DateTime,
    Decimal,
    FieldType,
    Int,
    Int64,
    List,
    Logical,
    WideDecimal,
    bare_type,
)
from ripple.storage.log.body import columns_of

if TYPE_CHECKING:
    from ripple.model.schema.types import Schema

_NANOSECONDS = (DateTime, Int64, Int)


def check_topic(topic: Schema, wanted: Schema, source: str) -> None:
    """Raise SchemaError naming the first field of ``wanted`` that a topic cannot give.

    A column holds dates and decimals as whole numbers, which another type would take for others.
    """
    found = {field.name: bare_type(field.type) for field in flattened(topic).fields}
    for field in wanted.fields:
        declared, there = bare_type(field.type), found.get(field.name)
        if there is not None and not _stands_for(there, declared):
            way = ": declare it as the topic has it"
            if isinstance(there, DECIMALS) and isinstance(declared, DECIMALS):
                own = _declarable(there)
                way = f": declare {own}, and a .derive with .cast({declared}) makes the other"
            raise SchemaError(
                f"column {field.name!r} of {source} is {_word(there)}, but the schema declares "
                f"{_word(declared)}{way}"
            )
    check_columns(columns_of(topic), arrow_schema_of(wanted.fields), source)


def _stands_for(there: FieldType, declared: FieldType) -> bool:
    if isinstance(there, List) and isinstance(declared, List):
        return _stands_for(bare_type(there.of), bare_type(declared.of))
    if not isinstance(there, Logical) and not isinstance(declared, Logical):
        return True
    if isinstance(there, Decimal) and isinstance(declared, Decimal):
        digits = min(there.precision, PRECISION_MAX)  # sums have one more than a record declares
        return there.scale == declared.scale and declared.precision >= digits
    if isinstance(there, WideDecimal) and isinstance(declared, WideDecimal):
        return there.scale == declared.scale and declared.precision >= there.precision
    return there == declared or (
        isinstance(there, _NANOSECONDS) and isinstance(declared, _NANOSECONDS)
    )


def _declarable(there: Decimal | WideDecimal) -> Decimal | WideDecimal:
    """Return the type that a record declares for a topic's: results have one digit more."""
    if isinstance(there, Decimal) and there.precision > PRECISION_MAX:
        return Decimal(PRECISION_MAX, there.scale)
    return there


def _word(kind: FieldType) -> str:
    if isinstance(kind, List):
        return f"a list of {_word(bare_type(kind.of))}"
    return str(kind) if isinstance(kind, DECIMALS) else type(kind).__name__
