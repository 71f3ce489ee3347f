"""Compatibility of schemas as reader and writer. Every difference is found, at any depth.

The rules are this table. It wins over the usual prose, by which a reader would only need the fields
that it requires: here removing a required field is no backward-compatible change, and removing even
an optional one is no forward-compatible change, because a reader that still has the field must not
see it silently turn absent.

========================================  ========  =======  ====
change from old to new                    backward  forward  full
========================================  ========  =======  ====
add an optional field                     yes       yes      yes
add a required field                      no        yes      no
remove an optional field                  yes       no       no
remove a required field                   no        no       no
widen a type (Int to Int64)               yes       no       no
narrow a type (Int64 to Int)              no        no       no
rename a field                            no        no       no
make a required field optional            yes       no       no
make an optional field required           no        yes      no
``T`` to ``Option T`` (a widening)        yes       no       no
``Option T`` to ``T`` (a narrowing)       no        no       no
add a case to a variant                   yes       no       no
remove a case from a variant              no        yes      no
change a case's arguments in number       no        no       no
point a ``Ref`` at another name           no        no       no
change anything else in a type            no        no       no
rename the schema                         no        no       no
change order, docs or the version         yes       yes      yes
========================================  ========  =======  ====

The lines from "make a required field optional" on are ours: each says yes exactly where every
value of the writer is a value of the reader, but for narrowing, which the table refuses.

Backward: the reader is the new schema, the writer the old one. Forward: the reader is the old
one. A rename is a removal and an addition; one of an optional field passes the backward check,
which cannot separate it from the two. Types of fields, list elements, option contents and case
arguments follow the rules of the whole, so ``List Int`` widens to ``List Int64``. A ``Ref`` is
compared by name: the schema it names is checked under its own.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal, TypeAlias

from ripple.core import sexp
from ripple.core.frozen import frozen
from ripple.model.schema import notation
from ripple.model.schema.types import (
    Case,
    Field,
    FieldType,
    Int,
    Int64,
    List,
    Option,
    Record,
    Schema,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Path: TypeAlias = tuple[str, ...]


class IncompatibilityKind(enum.Enum):
    """The kind of an incompatible difference."""

    NAME_CHANGED = "name changed"
    FIELD_MISSING = "field missing"
    FIELD_REMOVED = "field removed"
    FIELD_OPTIONAL = "field optional"
    TYPE_NARROWER = "type narrower"  # the reader's type has no room for all of the writer's
    TYPE_WIDER = "type wider"  # it has room for more; refused by the forward check only
    TYPE_CHANGED = "type changed"
    CASE_UNKNOWN = "case unknown"
    CASE_ARGUMENTS = "case arguments"


@frozen
class Incompatibility:
    """One difference: where (schema, field, ...; ``[]`` is a list's element), what, in words."""

    path: Path
    kind: IncompatibilityKind
    detail: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.detail}"


@frozen
class Compatible:
    """The reader can read the writer's records. True as a condition."""

    def __bool__(self) -> Literal[True]:
        return True


@frozen
class Incompatible:
    """The reader cannot; ``differences`` has at least one entry. False as a condition."""

    differences: tuple[Incompatibility, ...]

    def __bool__(self) -> Literal[False]:
        return False


Compatibility: TypeAlias = Compatible | Incompatible


def check_backward(reader: Schema, writer: Schema) -> Compatibility:
    """Tell whether ``reader``, the newer schema, can read records of ``writer``."""
    return _verdict(_differences(reader, writer, _BACKWARD))


def check_forward(reader: Schema, writer: Schema) -> Compatibility:
    """Tell whether ``reader``, the older schema, can read records of ``writer``."""
    return _verdict(_differences(reader, writer, _FORWARD))


def check_full(old: Schema, new: Schema) -> Compatibility:
    """Tell whether either schema can read records of the other, as a rolling upgrade needs."""
    backward = _differences(new, old, _BACKWARD)
    forward = _differences(old, new, _FORWARD)
    return _verdict(tuple(dict.fromkeys(backward + forward)))


def check_readable(reader: Schema, writer: Schema) -> Compatibility:
    """Tell whether every value of ``writer`` can be mapped to one of ``reader`` by name.

    Weaker than either direction: schemas that pass the backward or the forward check pass this one.
    """
    return _verdict(_differences(reader, writer, _READABLE))


@frozen
class _Rules:
    """The differences of the checks."""

    # The reader's field is unknown to the writer: refuse it though it is optional.
    needs_optional: bool
    # The writer's required field is unknown to the reader: refuse it.
    keeps_required: bool
    # The reader's type has room for more than the writer's: accept it.
    widens: bool


_BACKWARD = _Rules(needs_optional=False, keeps_required=True, widens=True)
_FORWARD = _Rules(needs_optional=True, keeps_required=False, widens=False)
_READABLE = _Rules(needs_optional=False, keeps_required=False, widens=True)


def _verdict(differences: tuple[Incompatibility, ...]) -> Compatibility:
    return Incompatible(differences) if differences else Compatible()


def _differences(reader: Schema, writer: Schema, rules: _Rules) -> tuple[Incompatibility, ...]:
    if reader is writer:
        return ()
    path = (reader.name,)
    found = list(_fields(reader.fields, writer.fields, path, rules))
    if reader.name != writer.name:
        kind = IncompatibilityKind.NAME_CHANGED
        detail = f"the reader is schema {reader.name}, the writer {writer.name}"
        found.insert(0, Incompatibility(path, kind, detail))
    return tuple(found)


def _fields(
    reader: tuple[Field, ...], writer: tuple[Field, ...], path: Path, rules: _Rules
) -> Iterator[Incompatibility]:
    written = {field.name: field for field in writer}
    for wanted in reader:
        found = written.pop(wanted.name, None)
        if found is not None:
            if found != wanted:
                yield from _field(wanted, found, (*path, wanted.name), rules)
        elif rules.needs_optional or not wanted.optional:
            yield Incompatibility(
                (*path, wanted.name),
                IncompatibilityKind.FIELD_MISSING,
                f"missing field {wanted.name}: the reader has it, the writer does not",
            )
    for extra in written.values():
        if rules.keeps_required and not extra.optional:
            yield Incompatibility(
                (*path, extra.name),
                IncompatibilityKind.FIELD_REMOVED,
                f"removed field {extra.name}: the writer requires it, the reader dropped it",
            )


def _field(reader: Field, writer: Field, path: Path, rules: _Rules) -> Iterator[Incompatibility]:
    if writer.optional and not reader.optional:
        yield Incompatibility(
            path,
            IncompatibilityKind.FIELD_OPTIONAL,
            "the reader requires the field, the writer may leave it out",
        )
    yield from _types(reader.type, writer.type, path, rules)


def _types(
    reader: FieldType, writer: FieldType, path: Path, rules: _Rules
) -> Iterator[Incompatibility]:
    if reader == writer:
        return
    match reader, writer:
        case Option(), Option():
            yield from _types(reader.of, writer.of, path, rules)
        case List(), List():
            yield from _types(reader.of, writer.of, (*path, "[]"), rules)
        case Record(), Record():
            yield from _fields(reader.fields, writer.fields, path, rules)
        case Variant(), Variant():
            yield from _cases(reader.cases, writer.cases, path, rules)
        case (Int64(), Int()) | (Option(), _):
            if not rules.widens:
                yield _mismatch(IncompatibilityKind.TYPE_WIDER, reader, writer, path)
            yield from _contents(reader, writer, path, rules)
        case (Int(), Int64()) | (_, Option()):
            yield _mismatch(IncompatibilityKind.TYPE_NARROWER, reader, writer, path)
            yield from _contents(reader, writer, path, rules)
        case _:
            yield _mismatch(IncompatibilityKind.TYPE_CHANGED, reader, writer, path)


def _contents(
    reader: FieldType, writer: FieldType, path: Path, rules: _Rules
) -> Iterator[Incompatibility]:
    # One side is an option and the other is not: compare the rest.
    if isinstance(reader, Option):
        yield from _types(reader.of, writer, path, rules)
    elif isinstance(writer, Option):
        yield from _types(reader, writer.of, path, rules)


def _cases(
    reader: tuple[Case, ...], writer: tuple[Case, ...], path: Path, rules: _Rules
) -> Iterator[Incompatibility]:
    known = {case.name: case for case in reader}
    for written in writer:
        here = (*path, written.name)
        wanted = known.get(written.name)
        if wanted is None:
            detail = f"the writer may send case {written.name}, which the reader does not know"
            yield Incompatibility(here, IncompatibilityKind.CASE_UNKNOWN, detail)
        elif len(wanted.args) != len(written.args):
            detail = f"the reader has {len(wanted.args)} arguments, the writer {len(written.args)}"
            yield Incompatibility(here, IncompatibilityKind.CASE_ARGUMENTS, detail)
        else:
            for index, (want, have) in enumerate(zip(wanted.args, written.args, strict=True)):
                yield from _types(want, have, (*here, str(index)), rules)


def _mismatch(
    kind: IncompatibilityKind, reader: FieldType, writer: FieldType, path: Path
) -> Incompatibility:
    return Incompatibility(
        path, kind, f"the reader has type {_excerpt(reader)}, the writer {_excerpt(writer)}"
    )


def _excerpt(kind: FieldType) -> str:
    text = sexp.dumps(notation.type_to_sexp(kind))
    return text if len(text) <= 60 else f"{text[:57]}..."
