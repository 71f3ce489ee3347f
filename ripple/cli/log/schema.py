"""A topic's schema, from the value of ``--schema``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from ripple.cli.lib.user_file import load_sources
from ripple.connectors.files.csv.format import TRADE_SCHEMA
from ripple.core.errors import InputError, RippleError, SchemaError
from ripple.model.schema import notation
from ripple.model.schema.avro import from_avro
from ripple.model.schema.document import DOCUMENT_BYTES_MAX
from ripple.model.schema.json_schema import from_json_schema
from ripple.model.schema.nested import flattened
from ripple.model.schema.types import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.schema.checks import Checks
    from ripple.storage.log import Topic

SCHEMA_FORMS = (
    "a pipeline (FILE.py[:NAME], its source's) or record class (FILE.py:NAME), or a file: .sexp "
    "(our notation), .json (JSON Schema), .avsc (Avro); or trade, the demo's"
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
    if _is_python(uri):
        source = _source(uri)
        return source.schema, source.time_field
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


def read_checks(uri: str | None, topic: Topic) -> Mapping[str, Checks]:
    """Return the checks and forms of times of a class's fields, for records of a topic.

    uri: the value of ``--schema``, of the class or a pipeline, or None. Raises InputError if its
    records differ from the records of the topic.
    """
    if uri is None:
        return {}
    checks: Mapping[str, Checks] = {}
    if _is_python(uri):
        source = _source(uri)
        schema, checks = source.schema, source.checks
    else:
        schema, _ = read_schema(uri)
    ours, theirs = (
        {member.name: replace(member, doc=None) for member in flattened(of).fields}
        for of in (schema, topic.schema)
    )
    if ours != theirs:
        other = sorted(one for one in {*ours, *theirs} if ours.get(one) != theirs.get(one))
        raise InputError(
            f"the records of {uri} are not those of {topic.path}: they differ in "
            f"{', '.join(other)} (ripple log info shows the topic's fields)"
        )
    return checks


def _is_python(uri: str) -> bool:
    return uri.endswith(".py") or ".py:" in uri


def _source(uri: str) -> SourceSpec:
    sources = load_sources(uri)
    if len(sources) != 1:
        names = ", ".join(source.name for source in sources)
        raise InputError(
            f"the pipeline at {uri} has {f'the sources {names}' if names else 'no source'}: "
            "say --schema FILE.py:NAME, where NAME = pipeline.source(...) is the source of "
            "the topic's records, or their class"
        )
    return sources[0]


def _parsed(uri: str, text: str) -> Schema:
    match PurePath(uri).suffix:
        case ".sexp":
            return notation.loads(text)
        case ".json":
            return from_json_schema(text)
        case ".avsc":
            return from_avro(text)
    raise SchemaError(f"cannot tell what schema it is: it must be {SCHEMA_FORMS}")
