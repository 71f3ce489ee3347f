"""Values that are JSON objects in the frame of a registry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.formats.contract import at_rows
from ripple.connectors.formats.framed import (
    HEAD_BYTES,
    NOT_FRAMED,
    WriterSchemas,
    by_schema,
    unreadable,
)
from ripple.connectors.formats.json import JsonValues
from ripple.core.errors import SchemaError
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.model.schema.json_schema import from_json_schema
from ripple.model.schema.nested import flattened
from ripple.model.schema.types import DECIMALS, Dict, JsonText, List

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ripple.connectors.formats.registry import Registered, Registry
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Logical, Schema

FORM = "JSON"
# Types of JSON whose values a source gives as texts for these types.
_TAKEN: tuple[tuple[Any, set[str]], ...] = (
    (List, {"array"}),
    (Dict, {"object"}),
    (JsonText, {"array", "object"}),
    (DECIMALS, {"integer", "number", "string"}),
)


class JsonSchemaValues:
    """Each value is an object of a schema with the pipeline's fields in their types.

    Objects are validated by the pipeline's fields and checks, and not by the schema: that is their
    writer's task.
    """

    at_once = False

    def __init__(self, shape: RecordShape, registry: Registry) -> None:
        self.shape = shape
        self._objects = JsonValues(shape)
        self._why_not = WriterSchemas(registry, self._refusal, str)

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values. Raises InputError as AvroValues does."""
        parts: list[tuple[Batch, npt.NDArray[np.int64]]] = []
        refused: list[Rejected] = []
        for number, rows in by_schema(values):
            why = NOT_FRAMED if number < 0 else self._why_not.at(number)
            if why:
                refused += [
                    Rejected(row, None, why, values[row].as_py()[:RAW_BYTES_MAX])
                    for row in rows.tolist()
                ]
                continue
            own = values if len(rows) == len(values) else values.take(pa.array(rows))
            # Without an end, Arrow computes a negative size for two values.
            objects = pc.binary_slice(own, HEAD_BYTES, 1 << 31)
            parts.append((self._objects.batch(objects), rows))
        if len(parts) == 1 and not refused:
            return parts[0][0]
        return at_rows(parts, refused, len(values), self.shape)

    def _refusal(self, found: Registered) -> str:
        """Return why a schema's records cannot be read; "" if they can."""
        why = unreadable(found, FORM, self.shape, understood)
        return why and f"schema {found.id}: {why}"


def understood(text: str, shape: RecordShape) -> Schema:
    """Return a JSON Schema with those of its properties that the shape has."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError("it is no JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("properties"), dict):
        raise SchemaError("it describes no object with properties")
    known = {member.name for member in shape.schema.fields}
    wanted = _wanted_of(document, known, shape.logical)
    return flattened(from_json_schema(wanted, name=shape.schema.name))


def _wanted_of(
    described: dict[str, Any],
    known: set[str],
    logical: Mapping[str, Logical | List],
    at: str = "",
) -> dict[str, Any]:
    """Return an object's schema with those properties that are known by their paths.

    logical: of which the values become texts, see ``RecordShape``.
    """
    kept: dict[str, Any] = {}
    for name, one in described["properties"].items():
        path = f"{at}{name}"
        is_around = any(other.startswith(f"{path}.") for other in known)
        is_object = isinstance(one, dict) and isinstance(one.get("properties"), dict)
        if is_around and is_object and path not in known:
            kept[name] = _wanted_of(one, known, logical, f"{path}.")
        elif path in known and _becomes_text(names := _type_names(one), logical.get(path)):
            kept[name] = {"type": ["string", "null"] if "null" in names else "string"}
        elif path in known or (is_around and isinstance(one, dict)):
            kept[name] = one  # if it is of another type, the comparison says so
    required = [name for name in described.get("required") or () if name in kept]
    return {**described, "properties": kept, "required": required}


def _type_names(node: Any) -> set[str]:
    """Return the names of a node's types, ``null`` among them, as far as they stand in it."""
    if not isinstance(node, dict):
        return set()
    kind, among = node.get("type"), node.get("anyOf") or node.get("oneOf")
    if isinstance(among, list):
        return {name for one in among for name in _type_names(one)}
    return {name for name in (kind if isinstance(kind, list) else [kind]) if isinstance(name, str)}


def _becomes_text(names: set[str], kind: Logical | List | None) -> bool:
    """Tell whether values of these types of JSON are read as texts for a field of a type."""
    bare = names - {"null"}
    return bool(bare) and any(
        isinstance(kind, declared) and bare <= taken for declared, taken in _TAKEN
    )
