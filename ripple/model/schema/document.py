"""Schema documents from outside: read within bounds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ripple.core.errors import SchemaError
from ripple.model.schema.types import DEPTH_MAX, Dict, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.model.schema.types import FieldType

T = TypeVar("T")
M = TypeVar("M")

DOCUMENT_BYTES_MAX = 1 << 20
# References can make a short document mean an endless one; this counts what it means.
TYPES_MAX = 10_000

Document: TypeAlias = str | bytes | dict[str, Any]
Json: TypeAlias = Any  # what json.loads returns


def parse(document: Document) -> Json:
    """Return the JSON value of a document, parsed already or not.

    Raises SchemaError if it is longer than ``DOCUMENT_BYTES_MAX`` or no
    JSON.
    """
    if isinstance(document, dict):
        return document
    if len(document) > DOCUMENT_BYTES_MAX:
        raise SchemaError(
            f"the schema document has {len(document)} bytes; at most {DOCUMENT_BYTES_MAX} are read "
            "(DOCUMENT_BYTES_MAX)"
        )
    try:
        return json.loads(document)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema document is not JSON: {error}") from error


class Bounds:
    """Counts the types that an importer visits."""

    def __init__(self) -> None:
        self._types = 0

    def visit(self, path: str, depth: int) -> None:
        """Raise SchemaError at the first type too deep or too many."""
        self._types += 1
        if depth > DEPTH_MAX:
            raise SchemaError(f"{path}: nested deeper than {DEPTH_MAX} (DEPTH_MAX)")
        if self._types > TYPES_MAX:
            raise SchemaError(f"{path}: the document means more than {TYPES_MAX} types (TYPES_MAX)")


def build(path: str, make: Callable[[tuple[M, ...]], T], members: tuple[M, ...]) -> T:
    """Return ``make(members)``; none, or those it refuses, are a SchemaError with the path."""
    refuse_empty(path, "variant" if make is Variant else "record", members)
    try:
        return make(members)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def map_of(path: str, of: FieldType) -> Dict:
    """Return the type of maps of ``of``; another type of values is a SchemaError with the path."""
    try:
        return Dict(of)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def refuse_empty(path: str, what: str, members: Sequence[object]) -> None:
    """Raise SchemaError for a record without fields, a variant likewise."""
    if not members:
        raise SchemaError(f"{path}: a {what} has no {'cases' if what == 'variant' else 'fields'}")


def text_of(node: Mapping[str, Json], key: str, path: str) -> str | None:
    """Return the text under ``key``, None if there is none; anything else is a SchemaError."""
    value = node.get(key)
    if value is not None and not isinstance(value, str):
        raise SchemaError(f"{path}: {key} is {excerpt(value)}, not a text")
    return value


def list_of(node: Mapping[str, Json], key: str, path: str) -> list[Json]:
    """Return the list under ``key``, an empty one if there is none; else a SchemaError."""
    value = node.get(key, [])
    if not isinstance(value, list):
        raise SchemaError(f"{path}: {key} is {excerpt(value)}, not a list")
    return value


def version_of(node: Mapping[str, Json], key: str, path: str) -> int:
    """Return the version under ``key``, 1 if there is none; else a SchemaError."""
    value = node.get(key, 1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SchemaError(f"{path}: {key} is {excerpt(value)}, not a whole number")
    return value


def excerpt(value: Json) -> str:
    """Return a short text of a JSON value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
