"""The content of an entry: a record as JSON in its only field, or the record's fields."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.record_shape import value_type
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.record_shape import RecordShape

_BARE = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null")


class Documents:
    """Converts entries to JSON: all values are text; the record's schema says which are numbers."""

    def __init__(self, shape: RecordShape) -> None:
        self._texts = {
            field.name
            for field in shape.schema.fields
            if value_type(field)[0] in (pa.string(), pa.binary())
        }

    def of(self, fields: Mapping[bytes, bytes]) -> bytes:
        """Return the document of an entry. Raises InputError for text that is none."""
        if len(fields) == 1:
            (value,) = fields.values()
            return value
        try:
            texts = {name.decode(): value.decode() for name, value in fields.items()}
        except UnicodeDecodeError as error:
            raise InputError("a field is no UTF-8") from error
        members = (f"{json.dumps(name)}: {self._value(name, t)}" for name, t in texts.items())
        return f"{{{', '.join(members)}}}".encode()

    def _value(self, name: str, text: str) -> str:
        if name not in self._texts and _BARE.fullmatch(text):
            return text
        return json.dumps(text)
