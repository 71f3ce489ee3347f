"""A topic's schema, from what a user writes after ``--schema``."""

from __future__ import annotations

from pathlib import PurePath

from ripple.connectors.files.csv.format import TRADE_SCHEMA
from ripple.core.errors import InputError, SchemaError
from ripple.model.schema import notation
from ripple.model.schema.avro import from_avro
from ripple.model.schema.document import DOCUMENT_BYTES_MAX
from ripple.model.schema.json_schema import from_json_schema
from ripple.model.schema.types import Schema

SCHEMA_FORMS = (
    "trade (the default), or a file: .sexp (our notation), .json (JSON Schema), .avsc (Avro)"
)


def read_schema(place: str) -> Schema:
    """Return the schema at ``place``; raises InputError and SchemaError, which name it."""
    if place == "trade":
        return TRADE_SCHEMA
    try:
        with open(place, encoding="utf-8") as file:
            text = file.read(DOCUMENT_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {place}: {error}") from error
    match PurePath(place).suffix:
        case ".sexp":
            return notation.loads(text)
        case ".json":
            return from_json_schema(text)
        case ".avsc":
            return from_avro(text)
    raise SchemaError(f"cannot tell what schema {place} is: it must be {SCHEMA_FORMS}")
