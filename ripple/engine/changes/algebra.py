"""diff, apply, compose: how deltas are made, take effect, and become one.

``apply`` is partial: a patch does not fit every value. So the laws are about *sound* sequences,
whose deltas apply one by one without an error, and for those they hold without exception:

1. compose(a, compose(b, c)) = compose(compose(a, b), c)
2. compose(d, Set(v)) = Set(v)
3. compose(d, Remove) = Remove, compose(d, Final(v)) = Final(v)
4. compose(Patch(p), Patch(q)) = Patch(p, then q, the last writer of each field winning)
5. apply(compose(a, b), v) = apply(b, apply(a, v))
6. apply(d, apply(d, v)) = apply(d, v)

and apply(diff(v, w), v) = w; the empty patch is the identity of compose.

The composition of an unsound sequence follows from one question: may a later receiver come to hold
a value that was never written? A Patch after a Remove is such a sequence. Composed to the Patch, it
would revive the removed value and break law 1; composed to Remove, it would hide that a change was
lost. So compose refuses it, as it refuses a Patch that does not fit the Set before it. Laws 2 and 3
need no such question: after Set, Remove or Final, the past is forgotten, whether it was sound or
not.

But for one thing that is not forgotten: a Final is the last delta of its key. Only the same Final
again may follow it, and the empty Patch. Not a Remove either: for the table it would change
nothing, but a receiver that keeps final rows would lose a row that is promised never to change. A
table cannot check it, since the key has left it, so sequences with more after a Final are unsound
by this rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.errors import DeltaError
from ripple.engine.changes import shape
from ripple.engine.changes.equality import same
from ripple.engine.changes.rows import (
    ABSENT,
    Delta,
    FieldRemove,
    FieldSet,
    Final,
    MapRemove,
    MapSet,
    Patch,
    PatchOp,
    Remove,
    Set,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.schema.types import Schema

Value: TypeAlias = Any  # a record, a map, a scalar, or ABSENT

PATCH_THRESHOLD = 3
"""Up to so many fields, a changed value is sent whole: the break-even in bytes."""


def diff(
    old: Value,
    new: Value,
    *,
    schema: Schema | None = None,
    patch_threshold: int = PATCH_THRESHOLD,
) -> Delta[Any]:
    """Return the delta that leads from ``old`` to ``new``; either may be ``ABSENT``.

    The same value gives the empty Patch. A value of at most ``patch_threshold`` fields or
    entries, or with more than half of them changed, gives Set; else a Patch of the changed ones.
    It is never a Final: values do not say. Nested values are compared in depth and replaced whole.
    With a ``schema``, dicts are records with its fields; without, they are maps. Values are the
    same when :func:`same` says so.
    """
    if new is ABSENT:
        return Patch() if old is ABSENT else Remove()
    if old is ABSENT:
        return Set(new)
    fields = shape.fields_of(new, schema)
    ops: list[PatchOp]
    if fields is not None and _same_kind(old, new):
        size, ops = len(fields), _field_ops(fields, old, new)
    elif fields is None and isinstance(old, Mapping) and isinstance(new, Mapping):
        size = len(new)
        ops = [MapRemove(key) for key in old if key not in new]
        ops += [MapSet(k, v) for k, v in new.items() if k not in old or not same(old[k], v)]
    else:
        return Patch() if same(old, new) else Set(new)
    if not ops:
        return Patch()
    if size <= patch_threshold or 2 * len(ops) > size:
        return Set(new)
    return Patch(tuple(ops))


def apply(delta: Delta[Any], value: Value, *, schema: Schema | None = None) -> Value:
    """Return ``value`` with ``delta`` applied; ``ABSENT`` stands for no value, on both sides.

    ``value`` itself is left as it is. Raises :class:`DeltaError` for a Patch of an absent value,
    a field that is not declared, a value of the wrong type, a required field made absent.
    """
    match delta:
        case Set(new):
            fields = shape.fields_of(new, schema)
            if fields is not None:
                shape.check_record(new, fields)
            return new
        case Remove():
            return ABSENT
        case Final():
            apply(Set(delta.value), value, schema=schema)
            return ABSENT
        case Patch(ops):
            return _patched(value, ops, schema) if ops else value
        case _:
            raise _no_delta(delta)


def compose(first: Delta[Any], second: Delta[Any], *, schema: Schema | None = None) -> Delta[Any]:
    """Return the one delta that has the effect of ``first``, then ``second``.

    Raises :class:`DeltaError` for a non-empty Patch after a Remove, and for a Patch that does not
    fit the Set before it: no value exists on which such a pair applies; and for anything but
    itself after a Final.
    """
    match first, second:
        case Final(value), Final(again) if same(value, again):
            return first
        case Final(), Patch(()):
            return first
        case Final(), Set() | Patch() | Remove() | Final():
            raise DeltaError(f"a {type(second).__name__} {AFTER_FINAL}")
        case _, Set() | Remove() | Final():
            return second
        case Patch(before), Patch(after):
            return Patch(tuple(_merged([*before, *after])))
        case Set(value), Patch():
            return Set(apply(second, value, schema=schema))
        case Remove(), Patch(()):
            return first
        case Remove(), Patch():
            raise DeltaError("a Patch follows a Remove: its author has lost a Set in between")
        case _:
            raise _no_delta(first if isinstance(second, Patch) else second)


AFTER_FINAL = "follows a Final: a final row never changes again"


def _no_delta(found: object) -> DeltaError:
    return DeltaError(f"a delta is a Set, Patch, Remove or Final, not {type(found).__name__}")


def _same_kind(old: Value, new: Value) -> bool:
    return type(old) is type(new) or (isinstance(old, Mapping) and isinstance(new, Mapping))


def _field_ops(fields: shape.Fields, old: Value, new: Value) -> list[PatchOp]:
    ops: list[PatchOp] = []
    get = shape.reader(old)
    for name, field in fields.items():
        before, after = get(old, name), get(new, name)
        if before is after or same(before, after):
            continue
        removed = after is None and field.optional
        ops.append(FieldRemove(name) if removed else FieldSet(name, after))
    return ops


def _patched(value: Value, ops: Iterable[PatchOp], schema: Schema | None) -> Value:
    if value is ABSENT:
        raise DeltaError("a Patch of a key that is absent: ask its author for a snapshot")
    fields = shape.fields_of(value, schema)
    if fields is not None:
        return shape.replaced(value, _field_changes(ops, fields), fields)
    if not isinstance(value, Mapping):
        raise DeltaError(f"a Patch of a {type(value).__name__}, which only Set can change")
    entries = dict(value)
    for op in ops:
        _apply_entry(op, entries)
    return entries


def _field_changes(ops: Iterable[PatchOp], fields: shape.Fields) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for op in ops:
        if isinstance(op, MapSet | MapRemove):
            raise DeltaError(f"{type(op).__name__} is for maps, and the value is a record")
        if not isinstance(op, FieldSet | FieldRemove):
            raise _no_operation(op)
        if op.name not in fields:
            raise shape.unknown_field(op.name, fields)
        if isinstance(op, FieldRemove) and not fields[op.name].optional:
            raise DeltaError(f"field {op.name!r} is required: it can be set, not removed")
        after = op.value if isinstance(op, FieldSet) else None
        shape.check_field(fields[op.name], after)
        changes[op.name] = after
    return changes


def _apply_entry(op: PatchOp, entries: dict[Any, Any]) -> None:
    if isinstance(op, FieldSet | FieldRemove):
        raise DeltaError(
            f"{type(op).__name__} of {op.name!r} is for records, and the value is a map: "
            "give the schema if its keys are field names"
        )
    if not isinstance(op, MapSet | MapRemove):
        raise _no_operation(op)
    if op.key != op.key:  # only NaN differs from itself
        raise DeltaError("NaN cannot be the key of an entry: it would never be found again")
    try:
        if isinstance(op, MapSet):
            entries[op.key] = op.value
        else:
            entries.pop(op.key, None)
    except TypeError as error:
        raise DeltaError(f"{op.key!r} cannot be the key of an entry: {error}") from error


def _no_operation(found: object) -> DeltaError:
    return DeltaError(
        f"a Patch holds FieldSet, FieldRemove, MapSet and MapRemove, not {type(found).__name__}"
    )


def _merged(ops: Iterable[PatchOp]) -> Iterable[PatchOp]:
    """Return one operation per field or entry: the last, at the place of the first."""
    last: dict[tuple[bool, Any], PatchOp] = {}
    for op in ops:
        if isinstance(op, FieldSet | FieldRemove):
            last[True, op.name] = op
        elif isinstance(op, MapSet | MapRemove):
            last[False, op.key] = op
        else:
            raise _no_operation(op)
    return last.values()
