"""Types in the schemas of Avro."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_NULLS = ("null", {"type": "null"})


def bare_type(kind: Any) -> Any:
    """Return a type out of a union with null and of braces around it; None for another union."""
    if isinstance(kind, list):
        others = [one for one in kind if one not in _NULLS]
        return bare_type(others[0]) if len(others) == 1 else None
    if isinstance(kind, dict) and isinstance(kind.get("type"), (dict, list)):
        return bare_type(kind["type"])
    return kind


def type_name(kind: Any) -> Any:
    """Return the name of a type, also of one in a union with null, or None."""
    bare = bare_type(kind)
    return bare.get("type") if isinstance(bare, dict) else bare


def inner_record(kind: Any, records: Mapping[str, Any]) -> Any:
    """Return the record that a type is, also one in a union with null, or None.

    records: by their names without namespaces.
    """
    bare = bare_type(kind)
    if isinstance(bare, str):
        return records.get(bare.rpartition(".")[2])
    return bare if isinstance(bare, dict) and bare.get("type") == "record" else None
