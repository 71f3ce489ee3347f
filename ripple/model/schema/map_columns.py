"""The members of columns of maps, which are texts of JSON in canonical form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.frozen import frozen
from ripple.model.schema.text_columns import parts, text_column

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ARROW = {"int": pa.int64(), "float": pa.float64()}


@frozen
class Members:
    """The members of all maps of a column, in order.

    counts: of each row. keys, values: as written, texts without their quotes.
    """

    counts: npt.NDArray[np.int64]
    keys: pa.Array
    values: pa.Array


def members_of(maps: pa.Array) -> Members:
    """Return the members of a column of stored maps; a null has none."""
    from ripple.model.schema.map_texts import members  # noqa: PLC0415 - few have maps

    counts, keys, values = members(*parts(maps))
    return Members(counts, text_column(*keys), text_column(*values))


def keys_in(members: Members) -> pa.Array:
    """Return the keys without escapes."""
    return _unescaped(members.keys)


def values_in(written: pa.Array, kind: str) -> pa.Array:
    """Return values as a column. kind: "int", "float", "bool" or "text"."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    if kind == "text":
        return _unescaped(written)
    if kind == "bool":
        return pc.equal(written, "true")
    return written.cast(_ARROW[kind])


def _unescaped(texts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    escaped = pc.match_substring(texts, "\\")
    if not pc.any(escaped).as_py():
        return texts
    plain: list[Any] = [json.loads(f'"{one}"') for one in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(texts, pc.fill_null(escaped, False), pa.array(plain, pa.string()))
