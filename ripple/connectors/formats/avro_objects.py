"""Avro records in the frame of a registry, one by one as Python objects: record keys, envelopes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ripple.connectors.formats.avro import object_of
from ripple.connectors.formats.avro_writers import (
    FORM,
    Writer,
    document_of,
    parsed_in,
    scales_of,
    ticks_of,
    understood_in,
)
from ripple.connectors.formats.framed import (
    HEAD_BYTES,
    NOT_FRAMED,
    WriterSchemas,
    check_subject,
    unreadable,
)
from ripple.connectors.formats.registry import Registered, Registry
from ripple.core.errors import SchemaError

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Schema

_ROWS = ("before", "after")


class AvroObjects:
    """Framed values as objects, with moments and dates in nanoseconds since 1970.

    shape: of the rows in envelopes of Debezium; None where each value is a record of its own.
    """

    def __init__(self, registry: Registry, shape: RecordShape | None = None) -> None:
        self._registry = registry
        self._shape = shape
        self._logical = {} if shape is None else shape.logical
        self._writers = WriterSchemas(registry, self._writer_of, Writer)

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
        writer = self._writers.at(int.from_bytes(value[1:HEAD_BYTES], "big"))
        if writer.why_not:
            raise ValueError(writer.why_not)
        found = object_of(value, writer.parsed)
        writer.to_ns(found if self._shape is None else found["after"], self._logical)
        return found

    def _writer_of(self, found: Registered) -> Writer:
        if self._shape is not None:
            why = unreadable(found, FORM, self._shape, rows_understood)
        else:
            why = "" if found.form == FORM else f"it is {found.form}, and {FORM} was asked for"
        if why:
            return Writer(f"schema {found.id}: {why}")
        try:
            document = json.loads(found.text)
            _, parsed = parsed_in(document)
            row = document if self._shape is None else _row_in(document)
            fields = row.get("fields", ()) if isinstance(row, dict) else ()
            scales = scales_of(fields, self._logical)
            return Writer(
                "", ticks_ns=ticks_of(fields, self._logical), scales=scales, parsed=parsed
            )
        except (SchemaError, ValueError, RecursionError) as error:
            return Writer(f"schema {found.id} is no Avro schema: {error}")


def rows_understood(text: str, shape: RecordShape) -> Schema:
    """Return the Avro schema of the rows in an envelope, with those fields that the shape has."""
    return understood_in(_row_in(document_of(text)), shape)


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
