"""Columns of Spark for the fields of a record, which may be members of structs."""

from __future__ import annotations

from typing import Any


def path_in(kind: Any, name: str) -> str | None:
    """Return a column of a StructType, or a member of columns, as Spark's text, or None."""
    if name in kind.names:
        return quoted(name)
    parts = name.split(".")
    return None if type_at(kind, name) is None else ".".join(map(quoted, parts))


def type_at(kind: Any, name: str) -> Any:
    """Return the type of a column, or of a member of columns; None if it is not there."""
    found: Any = kind
    for part in [name] if name in kind.names else name.split("."):
        if part not in getattr(found, "names", ()):
            return None
        found = found[part].dataType
    return found


def plain(name: str, number: int) -> str:
    """Return a name for a field's column: Spark's mapInArrow takes a dot for a member."""
    return name if name.isidentifier() else f"ripple_field_{number}"


def quoted(name: str) -> str:
    """Return a name as Spark's text."""
    return "`" + name.replace("`", "``") + "`"
