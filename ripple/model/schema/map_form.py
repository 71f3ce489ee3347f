"""Maps as sources write them in texts: objects of JSON; ours are such texts in canonical form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.frozen import frozen
from ripple.model.schema.logical.maps import word_of_map
from ripple.model.schema.text_columns import parts, text_column
from ripple.model.schema.types import Bool, Dict, FieldType, Float, Int, Int64, String
from ripple.model.schema.values import Misfit, converter

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

_KINDS: dict[type, str] = {Int: "int", Int64: "int", Float: "float", Bool: "bool", String: "text"}


def canonical_text(value: Any, of: FieldType) -> str:
    """Return the text of a map, with its names in order. of: the type of its values.

    Raises Misfit, or ValueError for texts without a form in UTF-8.
    """
    if not isinstance(value, Mapping):
        raise Misfit("a map", value)
    read, made = converter(of), {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise Misfit("a map with texts as keys", value)
        name.encode()
        made[name] = read(each)
    return json.dumps(dict(sorted(made.items())), ensure_ascii=False, separators=(",", ":"))


@frozen
class MapForm:
    """The texts of a map: an object of JSON, with values of its type and none of them null."""

    kind: Dict

    is_text = True
    is_other_unit = False
    clocks = None

    @property
    def words(self) -> str:
        """The reason for a value that is no such map, after "the field"."""
        return f"is not {word_of_map(self.kind)}"

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings in canonical form, and where it is no map of the type.

        It is null there, and where the column is. Of equal names the last one counts.
        """
        from ripple.model.schema.map_texts import KINDS, canonical  # noqa: PLC0415 - few have maps

        ends, texts, good = canonical(*parts(column), KINDS[_KINDS[type(self.kind.of)]])
        found = text_column(ends, texts, None if good.all() else good)
        left = (good == 0) & np.asarray(column.is_valid())
        if not left.any():
            return found, left
        rows, own = np.flatnonzero(left), list[str | None]()
        for text in column.take(pa.array(rows)).to_pylist():
            try:
                own.append(canonical_text(json.loads(text), self.kind.of))
            except (ValueError, RecursionError, Misfit):
                own.append(None)
        failed = np.zeros(len(column), np.bool_)
        failed[rows] = [one is None for one in own]
        places = np.arange(len(column))
        places[rows] = len(column) + np.arange(len(rows))
        joined = pa.concat_arrays([found, pa.array(own, pa.string())])
        return joined.take(pa.array(places)), failed
