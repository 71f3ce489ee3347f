"""Transforms of records before they count: rename, parse a time, mask, filter. No I/O.

Each transform knows the fields that it needs for the requested ones, and computes these, whole
columns at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.record_shape import value_type
from ripple.core.errors import InputError
from ripple.core.frozen import frozen
from ripple.model.schema.json_form import JsonForm
from ripple.model.schema.time_form import ISO, UNITS_NS, TimeForm
from ripple.model.schema.types import (
    Bool,
    DateTime,
    Field,
    FieldType,
    Float,
    Int64,
    List,
    Logical,
    LogicalText,
    Option,
    String,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from ripple.model.schema.checks import Form

    Flags = npt.NDArray[np.bool_]
    Fields = dict[str, Field]
    Columns = dict[str, pa.Array]

MASKED = "****"
_COMPARE = {"above": pc.greater, "below": pc.less}


class Passing:
    """A batch between transforms: columns, reasons for rejected records, and the rows that stay."""

    def __init__(self, records: pa.RecordBatch) -> None:
        self.columns: Columns = dict(zip(records.schema.names, records.columns, strict=True))
        self.refused: dict[int, str] = {}
        self.stays: Flags = np.ones(records.num_rows, bool)

    def refuse(self, rows: Flags, reason: str) -> None:
        """Note a reason against rows; the first one counts."""
        for row in np.flatnonzero(rows).tolist():
            self.refused.setdefault(row, reason)


class Transform(Protocol):
    """One of them."""

    def needs(self, fields: Fields) -> Fields:
        """Return the fields it needs to produce these. Raises InputError."""

    def called(self, field: str) -> str | None:
        """Return the new name of a field; None if its values change."""

    def apply(self, passing: Passing) -> None:
        """Make its columns of those before it."""


@frozen
class RenameFields:
    """Fields that have another name in the source. names: from the source's name to ours."""

    names: Mapping[str, str]

    def needs(self, fields: Fields) -> Fields:
        """Return the fields under the source's names."""
        back = {ours: theirs for theirs, ours in self.names.items()}
        if len(back) < len(self.names):
            raise InputError("two fields become one")
        for ours, theirs in back.items():
            _known(fields, ours)
            if theirs in fields and theirs not in back:
                raise InputError(f"{theirs!r} becomes {ours!r}, and is wanted, too")
        return {
            name: replace(field, name=name)
            for old, field in fields.items()
            for name in [back.get(old, old)]
        }

    def called(self, field: str) -> str | None:
        """Return the name that it gives."""
        return self.names.get(field, field)

    def apply(self, passing: Passing) -> None:
        """Rename."""
        passing.columns = {self.names.get(name, name): of for name, of in passing.columns.items()}


@frozen
class ReadTime:
    """A value of a logical type that the source has as text, or a time as a number of a unit."""

    field: str
    form: Form

    def needs(self, fields: Fields) -> Fields:
        """Return the field as the source has it."""
        field = _known(fields, self.field)
        kind = bare_type(field.type)
        if isinstance(self.form, JsonForm) and isinstance(kind, String):
            return fields
        is_time = kind == DateTime() or not isinstance(kind, Logical)
        is_number = value_type(field)[0] == pa.int64() or isinstance(kind, LogicalText | List)
        is_time &= not isinstance(kind, List)
        if not is_number or is_time != isinstance(self.form, TimeForm):
            raise InputError(
                f"{self.field!r} is no number of nanoseconds: if the record has a format for it, "
                "leave this transform out"
            )
        if not self.form.is_text:
            return fields
        kind = Option(String()) if isinstance(field.type, Option) else String()
        return fields | {self.field: replace(field, type=kind)}

    def called(self, field: str) -> str | None:
        """Return the same name, unless this is the field."""
        return None if field == self.field else field

    def apply(self, passing: Passing) -> None:
        """Convert the field to its stored form."""
        times, failed = self.form.parsed(passing.columns[self.field])
        passing.refuse(failed, f"{self.field} {self.form.words}")
        passing.columns[self.field] = times


@frozen
class MaskText:
    """Text of which only the last characters may be seen. keep: how many; none of shorter ones."""

    field: str
    keep: int

    def needs(self, fields: Fields) -> Fields:
        """Return the fields as they are."""
        if value_type(_known(fields, self.field))[0] != pa.string():
            raise InputError(f"{self.field!r} is no text, and only text can be masked")
        return fields

    def called(self, field: str) -> str | None:
        """Return the same name, unless this is the field."""
        return None if field == self.field else field

    def apply(self, passing: Passing) -> None:
        """Mask it; nulls stay null."""
        column = passing.columns[self.field]
        shown = MASKED
        if self.keep:
            tail = pc.utf8_slice_codeunits(column, -self.keep)
            is_long = pc.greater(pc.utf8_length(column), self.keep)
            shown = pc.if_else(is_long, pc.binary_join_element_wise(MASKED, tail, ""), MASKED)
        passing.columns[self.field] = pc.if_else(column.is_valid(), shown, None).cast(pa.string())


@frozen
class KeepWhere:
    """Only records of which all comparisons with a field are true: neither false nor null."""

    field: str
    comparisons: Mapping[str, Any]

    def needs(self, fields: Fields) -> Fields:
        """Return the fields, and the compared one, even if it is not requested."""
        values = [
            value
            for given in self.comparisons.values()
            for value in (given if isinstance(given, list) else [given])
        ]
        kinds = [_TYPES.get(type(value)) for value in values]
        is_number = Float() in kinds and all(kind in (Int64(), Float()) for kind in kinds)
        kind = Float() if is_number else next(iter(kinds), None)
        if kind is None or not (is_number or all(one == kind for one in kinds)):
            raise InputError(f"{self.field!r} is compared with no value, or with several types")
        if self.field not in fields:
            return fields | {self.field: Field(self.field, Option(kind))}
        wanted, _ = value_type(fields[self.field])
        given, _ = value_type(Field(self.field, kind))
        if given != wanted and not (given == pa.int64() and wanted == pa.float64()):
            raise InputError(f"{self.field!r} is {wanted}, and compared with {given}")
        return fields

    def called(self, field: str) -> str | None:
        """Return the same name: rows that stay are unchanged."""
        return field

    def apply(self, passing: Passing) -> None:
        """Leave the others out."""
        column = passing.columns[self.field]
        for name, given in self.comparisons.items():
            passing.stays &= pc.fill_null(_compared(column, name, given), False).to_numpy(
                zero_copy_only=False
            )


_TYPES: dict[type, FieldType] = {str: String(), int: Int64(), float: Float(), bool: Bool()}


def transform_of(given: Mapping[str, Any]) -> Transform:
    """Return the transform that a table of a TOML file says. Raises InputError."""
    kinds = [name for name in _TRANSFORMS if name in given]
    if len(kinds) != 1:
        raise InputError(
            f"it is one of {', '.join(_TRANSFORMS)}, and has {', '.join(given) or 'none'}"
        )
    (kind,) = kinds
    known, made = _TRANSFORMS[kind]
    unknown = [name for name in given if name not in (kind, *known)]
    if unknown:
        raise InputError(f"{kind} has no {unknown[0]!r}: it has {', '.join(known) or 'no more'}")
    return made(given)


def _rename(given: Mapping[str, Any]) -> Transform:
    names = given["rename"]
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise InputError('rename is a table of names: rename = { px = "price" }')
    return RenameFields(names)


def _timestamp(given: Mapping[str, Any]) -> Transform:
    unit = given.get("from")
    if unit not in (*UNITS_NS, ISO):
        raise InputError(f"timestamp is from one of {', '.join((*UNITS_NS, ISO))}, not {unit!r}")
    form = TimeForm(unit, "UTC", short_ones=True) if unit == ISO else TimeForm(unit)
    return ReadTime(_name(given, "timestamp"), form)


def _mask(given: Mapping[str, Any]) -> Transform:
    keep = given.get("keep", 0)
    if type(keep) is not int or keep < 0:
        raise InputError(f"mask keeps a number of characters, not {keep!r}")
    return MaskText(_name(given, "mask"), keep)


def _filter(given: Mapping[str, Any]) -> Transform:
    comparisons = {name: value for name, value in given.items() if name != "filter"}
    if not comparisons:
        raise InputError("filter needs is, is_not, above or below")
    for name in _COMPARE:
        if type(comparisons.get(name, 0)) not in (int, float):
            raise InputError(f"filter has {name} a number, not {comparisons[name]!r}")
    return KeepWhere(_name(given, "filter"), comparisons)


_TRANSFORMS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Transform]]] = {
    "rename": ((), _rename),
    "timestamp": (("from",), _timestamp),
    "mask": (("keep",), _mask),
    "filter": (("is", "is_not", *_COMPARE), _filter),
}


def _name(given: Mapping[str, Any], kind: str) -> str:
    name = given[kind]
    if not isinstance(name, str):
        raise InputError(f"{kind} is the name of a field, not {name!r}")
    return name


def _known(fields: Fields, name: str) -> Field:
    if name not in fields:
        raise InputError(f"there is no field {name!r}: there are {', '.join(fields)}")
    return fields[name]


def _compared(column: pa.Array, name: str, given: Any) -> pa.Array:
    if name in _COMPARE:
        return _COMPARE[name](column, pa.scalar(given))
    values = pa.array(given if isinstance(given, list) else [given], column.type)
    found = pc.and_(pc.is_in(column, values), column.is_valid())
    return found if name == "is" else pc.and_(pc.invert(found), column.is_valid())
