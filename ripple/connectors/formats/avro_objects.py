"""Avro records in the frame of a registry, one by one as Python objects: record keys, envelopes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.formats.avro import FIELDS_MAX, FORM, object_of, parsed_in, understood
from ripple.connectors.formats.framed import HEAD_BYTES, NOT_FRAMED, check_subject, unreadable
from ripple.connectors.formats.registry import Registered, Registry, RegistryError
from ripple.core.errors import InputError, SchemaError
from ripple.model.schema.avro_times import in_nanoseconds

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Schema

_ROWS = ("before", "after")


class _Writer(NamedTuple):
    """How objects of a schema are read: ticks_ns of fields in other units than nanoseconds."""

    why_not: str
    parsed: Any = None
    ticks_ns: tuple[tuple[str, int], ...] = ()


class AvroObjects:
    """Framed values as objects, with moments and dates in nanoseconds since 1970.

    shape: of the rows in envelopes of Debezium; None where each value is a record of its own.
    """

    def __init__(self, registry: Registry, shape: RecordShape | None = None) -> None:
        self._registry = registry
        self._shape = shape
        self._writers: dict[int, _Writer] = {}

    def check(self, subject: str) -> None:
        """Raise InputError unless envelopes of a subject's newest schema have rows of the shape."""
        assert self._shape is not None, "an envelope has rows"
        check_subject(self._registry, subject, FORM, self._shape, rows_understood)

    def read(self, value: bytes) -> Any:
        """Return a value. Raises ValueError, with a reason for people.

        Raises InputError where the registry does not answer: then no record is at fault.
        """
        if len(value) < HEAD_BYTES or value[0]:
            raise ValueError(NOT_FRAMED)
        writer = self._writer(int.from_bytes(value[1:HEAD_BYTES], "big"))
        if writer.why_not:
            raise ValueError(writer.why_not)
        found = object_of(value, writer.parsed)
        row = found if self._shape is None else found["after"]
        for name, ticks_ns in writer.ticks_ns:
            if isinstance(row, dict) and row.get(name) is not None:
                row[name] *= ticks_ns
        return found

    def _writer(self, number: int) -> _Writer:
        writer = self._writers.get(number)
        if writer is None:
            try:
                found = self._registry.schema(number)
            except RegistryError as error:
                raise InputError(str(error)) from error
            if found is None:
                return _Writer(f"the registry has no schema {number}")
            if len(self._writers) >= FIELDS_MAX:
                self._writers.clear()
            writer = self._writers[number] = self._writer_of(found)
        return writer

    def _writer_of(self, found: Registered) -> _Writer:
        if self._shape is not None:
            why = unreadable(found, FORM, self._shape, rows_understood)
        else:
            why = "" if found.form == FORM else f"it is {found.form}, and {FORM} was asked for"
        if why:
            return _Writer(f"schema {found.id}: {why}")
        try:
            document = json.loads(found.text)
            _, parsed = parsed_in(document)
            row = document if self._shape is None else _row_in(document)
            return _Writer("", parsed, _ticks_ns(row))
        except (SchemaError, ValueError, RecursionError) as error:
            return _Writer(f"schema {found.id} is no Avro schema: {error}")


def rows_understood(text: str, shape: RecordShape) -> Schema:
    """Return the Avro schema of the rows in an envelope, with those fields that the shape has."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError("it is no JSON") from error
    return understood(json.dumps(_row_in(document)), shape)


def _row_in(document: Any) -> dict[str, Any]:
    """Return the record type of ``after``, which may be defined in ``before``."""
    fields = document.get("fields") if isinstance(document, dict) else None
    found = {
        field["name"]: field.get("type")
        for field in (fields if isinstance(fields, list) else ())
        if isinstance(field, dict) and field.get("name") in _ROWS
    }
    after = _record_of(found.get("after"))
    if isinstance(after, str):
        before = _record_of(found.get("before"))
        named = before.get("name") if isinstance(before, dict) else None
        after = before if named == after.rsplit(".", 1)[-1] else None
    if not isinstance(after, dict):
        raise SchemaError("it has no record in after, as an envelope of Debezium has")
    return after


def _record_of(kind: Any) -> Any:
    """Return a record type, or its name, also of a union with null."""
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _record_of(others[0]) if len(others) == 1 else None
    is_record = isinstance(kind, str) or (isinstance(kind, dict) and kind.get("type") == "record")
    return kind if is_record else None


def _ticks_ns(record: Any) -> tuple[tuple[str, int], ...]:
    fields = record.get("fields", ()) if isinstance(record, dict) else ()
    units = ((field["name"], in_nanoseconds(field["type"])[1]) for field in fields)
    return tuple((name, ns) for name, ns in units if ns != 1)
