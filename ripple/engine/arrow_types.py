"""The Arrow types of fields as the engine reads and writes them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ripple.schema.arrow import to_arrow
from ripple.schema.types import Field, Schema


def arrow_fields(fields: Iterable[Field]) -> list[pa.Field]:
    """Return Arrow fields with the types of ``fields``; any of them may hold nulls.

    Nullability is not part of it: what is null where it must not be becomes a dead letter.
    """
    listed = tuple(fields)
    declared = to_arrow(Schema("row", listed)) if listed else []
    return [pa.field(field.name, field.type) for field in declared]
