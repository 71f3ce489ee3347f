"""Reading records of another version: values decoded by the writer's schema, mapped by name.

Positional bytes say nothing about names, and the fingerprint ignores order; so a reader that
decoded with its own schema could take one field for another of the same type. It decodes with
the *writer's* schema, learned in the handshake, and this module then maps fields and cases by
name. Values have the form that ``ripple.model.schema.types`` describes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ripple.core.errors import SchemaError
from ripple.model.schema.compat import Incompatible, check_readable
from ripple.model.schema.types import Field, FieldType, List, Option, Record, Schema, Variant

Value: TypeAlias = Any  # of any field type
Projection: TypeAlias = Callable[[Value], Value]


def project(writer: Schema, reader: Schema) -> Projection:
    """Return a function from the writer's decoded records to the reader's.

    Fields come in the reader's order; the writer's own are dropped, optional ones of the reader
    alone are absent. A value that needs no change is passed on, not copied. Raises SchemaError with
    every reason why some value of the writer would
    have no place in the reader (see :func:`ripple.model.schema.compat.check_readable`).
    """
    verdict = check_readable(reader, writer)
    if isinstance(verdict, Incompatible):
        reasons = "; ".join(str(difference) for difference in verdict.differences)
        raise SchemaError(
            f"{reader.name}/v{reader.version} cannot read {writer.name}/v{writer.version}: "
            f"{reasons}"
        )
    return _record(writer.fields, reader.fields) or _unchanged


def _unchanged(value: Value) -> Value:
    return value


# Below, None stands for the projection that changes nothing: most parts of most schemas.


def _record(writer: tuple[Field, ...], reader: tuple[Field, ...]) -> Projection | None:
    written = {field.name: field for field in writer}
    moves = [
        (field.name, written[field.name].optional, _kind(written[field.name].type, field.type))
        for field in reader
        if field.name in written
    ]
    same_order = [field.name for field in writer] == [field.name for field in reader]
    if same_order and all(move is None for _, _, move in moves):
        return None

    def run(record: Value) -> Value:
        result = {}
        for name, optional, move in moves:
            value = record.get(name) if optional else record[name]
            if value is not None or not optional:
                result[name] = value if move is None else move(value)
        return result

    return run


def _kind(writer: FieldType, reader: FieldType) -> Projection | None:
    match writer, reader:
        case Option(), _:
            return _option(_kind(writer.of, reader.of if isinstance(reader, Option) else reader))
        case _, Option():
            return _kind(writer, reader.of)
        case List(), List():
            return _list(_kind(writer.of, reader.of))
        case Record(), Record():
            return _record(writer.fields, reader.fields)
        case Variant(), Variant():
            return _variant(writer, reader)
        case _:
            return None


def _option(move: Projection | None) -> Projection | None:
    return None if move is None else lambda value: None if value is None else move(value)


def _list(move: Projection | None) -> Projection | None:
    return None if move is None else lambda values: [move(value) for value in values]


def _variant(writer: Variant, reader: Variant) -> Projection | None:
    wanted = {case.name: case.args for case in reader.cases}
    moves = {
        case.name: [
            _kind(have, want) for have, want in zip(case.args, wanted[case.name], strict=True)
        ]
        for case in writer.cases
    }
    if all(move is None for case in moves.values() for move in case):
        return None

    def run(value: Value) -> Value:
        name, *args = value
        pairs = zip(moves[name], args, strict=True)
        return (name, *(arg if move is None else move(arg) for move, arg in pairs))

    return run
