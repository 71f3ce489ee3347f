"""A topic's schema, from the value of ``--schema``."""

from __future__ import annotations

from pathlib import PurePath

from ripple.cli.lib.user_file import load_sources
from ripple.connectors.files.csv.format import TRADE_SCHEMA
from ripple.core.errors import InputError, RippleError, SchemaError
from ripple.model.schema import notation
from ripple.model.schema.avro import from_avro
from ripple.model.schema.document import DOCUMENT_BYTES_MAX
from ripple.model.schema.json_schema import from_json_schema
from ripple.model.schema.nested import flattened
from ripple.model.schema.types import Schema

SCHEMA_FORMS = (
    "a pipeline (FILE.py[:NAME], its source's), or a file: .sexp (our notation), .json (JSON "
    "Schema), .avsc (Avro); or trade, the demo's"
)


def read_schema(uri: str | None) -> tuple[Schema, str | None]:
    """Return the schema that ``--schema`` names, and its event-time field if known.

    Raises InputError and SchemaError, which name the file.
    """
    if uri is None:
        raise InputError(
            "name the schema of the topic's records: --schema FILE.py, of a pipeline that reads "
            "it, or --schema with a .sexp, .json or .avsc file"
        )
    if uri == "trade":
        return TRADE_SCHEMA, "timestamp_ns"
    if uri.endswith(".py") or ".py:" in uri:
        sources = load_sources(uri)
        if len(sources) != 1:
            names = ", ".join(source.name for source in sources)
            raise InputError(
                f"the pipeline at {uri} has {f'the sources {names}' if names else 'no source'}: "
                "say --schema FILE.py:NAME, where NAME = pipeline.source(...) is the source of "
                "the topic's records"
            )
        return sources[0].schema, sources[0].time_field
    try:
        with open(uri, encoding="utf-8") as file:
            text = file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        raise InputError(f"cannot read {uri}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SchemaError(f"{uri}: it is not text in UTF-8") from error
    try:
        return flattened(_parsed(uri, text)), None
    except RippleError as error:
        raise SchemaError(f"{uri}: {error}") from error


def _parsed(uri: str, text: str) -> Schema:
    match PurePath(uri).suffix:
        case ".sexp":
            return notation.loads(text)
        case ".json":
            return from_json_schema(text)
        case ".avsc":
            return from_avro(text)
    raise SchemaError(f"cannot tell what schema it is: it must be {SCHEMA_FORMS}")
