"""Constants: small tables within the plan, and joins with them.

A constant never changes, so the row for an event is a function of the event alone: no interleaving
of inputs, and no state. Its digest is part of the keys of the nodes above; other rows are a change
of code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.sexp import dumps
from ripple.model.canonical import DIGEST_BYTES
from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.keys.space import KeyColumn, key_space
from ripple.model.pipeline.checks import (
    blaming,
    check_distinct,
    check_name,
    check_new_field,
    check_suffix,
    field_name,
    type_text,
)
from ripple.model.pipeline.draft import Draft
from ripple.model.pipeline.given_rows import given_rows
from ripple.model.pipeline.nodes import ConstantJoin, Fields, type_of, types_of
from ripple.model.pipeline.table_join import check_compared, named_pairs, renamed, shown_side
from ripple.model.schema.notation import type_to_sexp
from ripple.model.schema.types import KEY_TYPES, KEY_WORDS, Field, bare_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.expression.expr import Operand

    Keys = Operand | Sequence[Operand]


class Constant:
    """A table within the plan, by a key; ``rp.constant`` makes one.

    name: for messages and plans. key: the names of its fields. fields: all of
    them. rows: a record batch, ordered by the key. digest: of the rows, 32 hexadecimal digits.
    Invariants: no two rows have one key, and no key has a null.
    """

    __slots__ = ("_columns", "_keys", "digest", "fields", "key", "name", "rows")

    def __init__(
        self, name: str, key: tuple[str, ...], members: Fields, rows: pa.RecordBatch
    ) -> None:
        """Order the rows. Raises PlanError for two rows of one key, or a null in one."""
        self.name, self.key = name, key
        self.fields: Mapping[str, Field] = MappingProxyType({one.name: one for one in members})
        for one in key:
            if rows.column(one).null_count:
                at = np.flatnonzero(np.asarray(rows.column(one).is_null()))[0]
                raise PlanError(f"row {at}: the key {one!r} is null, and null names no row")
        _check_once(rows, [self.fields[one] for one in key])
        self.rows = rows.sort_by([(one, "ascending") for one in key])
        self._keys = key_space([self.fields[one] for one in key])
        self._keys.adopt(self._keys.slots([self.rows.column(one) for one in key]))
        self.digest = _digest(members, self.rows)
        self._columns: dict[str, Values | pa.Array] = {}

    def column(self, name: str) -> Values | pa.Array:
        """Return a field of all rows: texts as Arrow has them, numbers unpacked, once."""
        if name not in self._columns:
            column, kind = self.rows.column(name), kind_of(type_of(self.fields[name]))[0]
            self._columns[name] = column if kind is Kind.TEXT else numbers(column, kind)
        return self._columns[name]

    def find(self, columns: Sequence[KeyColumn]) -> npt.NDArray[np.int64]:
        """Return the row of each key, -1 for none: int64[n]. columns: one per key field."""
        return self._keys.known(columns)  # slots are given in the order of the rows

    def __reduce__(self) -> Any:
        return Constant, (self.name, self.key, tuple(self.fields.values()), self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return (self.name, self.key, self.digest) == (other.name, other.key, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.key, self.digest))

    def __repr__(self) -> str:
        return f"<Constant {self.name!r}: {self.rows.num_rows} rows by {', '.join(self.key)}>"


def constant(name: str, table: Any, /, *, key: Keys) -> Constant:
    """Make a constant table, for joins with streams and tables.

    table: an Arrow table, or a frame of Polars or pandas; a list of dicts;
    or a list of instances of one record class or dataclass. Single values, no lists, at most
    16 MiB. key: the field, or fields, of its key: texts, integers or bools, unique and never null.
    The rows are part of the pipeline: other rows rebuild the folds behind. Raises PlanError with
    the row and the field.
    """
    with blaming("constant", name):
        check_name(name)
        members, rows = given_rows(name, table)
        for member in members:
            check_new_field(member.name, ())
        return Constant(name, _key(key, members), members, rows)


def constant_join_of(
    name: str,
    left: Draft,
    constant: Constant,
    *,
    on: Keys,
    left_on: Keys,
    right_on: Keys,
    how: Any,
    suffix: Any,
) -> ConstantJoin:
    """Return the join of a draft's rows with a constant. Raises PlanError."""
    if not isinstance(how, str) or how not in ("inner", "left"):
        raise PlanError(
            f"how is {shown(how)}: it must be 'inner' or 'left', since a row of the constant "
            f"{constant.name!r} without a partner is no row here"
        )
    check_suffix(suffix)
    right = Draft(left.name, fields=tuple(constant.fields.values()), at=constant.name)
    mine, theirs = named_pairs(left, right, on, left_on, right_on)
    if set(theirs) != set(constant.key):
        raise PlanError(
            f"the key of the constant {constant.name!r} is {', '.join(constant.key)}, and the join "
            f"names {', '.join(theirs)}: name the whole key, or give it another one, with key="
        )
    pairs = list(zip(mine, theirs, strict=True))
    for pair in pairs:
        check_compared(pair, left, right)
    names = [field.name for field in left.fields]
    added = renamed(right, pairs, names, suffix)
    by_right = dict(zip(theirs, mine, strict=True))
    return ConstantJoin(
        name,
        constant,
        tuple(by_right[one] for one in constant.key),
        how,
        tuple(one for one, _ in added),
        left.fields,
        (*left.fields, *(shown_side(field, maybe=how == "left") for _, field in added)),
        left.below(name),
        left.at,
    )


def _key(key: Keys, members: Fields) -> tuple[str, ...]:
    chosen = key if isinstance(key, (tuple, list)) else (key,)
    if key is None or not chosen:
        raise PlanError(f"a row is found by its key: name a field with key=, not {shown(key)}")
    types = types_of(members)
    names = tuple(field_name(one, types, "the key") for one in chosen)
    check_distinct(names, "key")
    for name in names:
        if not isinstance(bare_type(types[name]), KEY_TYPES):
            raise PlanError(f"the key {name!r} is {type_text(types[name])}: choose {KEY_WORDS}")
    return names


def _check_once(rows: pa.RecordBatch, key: Sequence[Field]) -> None:
    """Raise PlanError for a key of two rows."""
    keys = key_space(key)
    slots = keys.slots([rows.column(one.name) for one in key])
    again = np.flatnonzero(slots != np.arange(len(slots)))  # a new key gets the next slot
    if len(again):
        at = int(again[0])
        said = ", ".join(f"{one.name}={rows.column(one.name)[at].as_py()!r}" for one in key)
        raise PlanError(
            f"rows {int(slots[at])} and {at} have one key, {said}: a row is found by its key, so "
            "each is there once"
        )


def _digest(members: Sequence[Field], rows: pa.RecordBatch) -> str:
    """Return a digest of rows, the same with any version of Arrow and any layout."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for field in members:
        column = rows.column(field.name)
        text = dumps([field.name, type_to_sexp(field.type), str(bool(field.optional))])
        state.update(f"{len(column)} {text}\n".encode())
        state.update(np.asarray(column.is_valid()).tobytes())
        if pa.types.is_string(column.type):
            texts = [(text or "").encode() for text in column.to_pylist()]
            state.update(np.array([len(text) for text in texts], "<i8").tobytes())
            state.update(b"".join(texts))
            continue
        zero = pa.scalar(0, pa.int8()).cast(column.type)
        values = np.asarray(column.fill_null(zero))
        if values.dtype.kind == "f":  # there are many forms of NaN
            values = np.where(np.isnan(values), np.nan, values)
        state.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    return state.hexdigest()
