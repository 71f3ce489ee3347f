"""The items of columns of lists and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.model.expression.typed import kind_of
from ripple.model.schema.map_columns import keys_in, members_of, values_in
from ripple.model.schema.types import Dict, Field, bare_type

if TYPE_CHECKING:
    import numpy.typing as npt


def items_of(column: Any, field: Field) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
    """Return how many items each row has, and columns of all: of a map its keys and values."""
    (declared,) = arrow_fields([field])
    values = arrow_column(column, declared.type)
    kind = bare_type(field.type)
    if isinstance(kind, Dict):
        members = members_of(values)
        of = kind_of(kind.of)[0].name.lower()
        return members.counts, [keys_in(members), values_in(members.values, of)]
    lengths = np.diff(np.asarray(values.offsets))
    counts = np.where(np.asarray(values.is_null()), 0, lengths).astype(np.int64)
    return counts, [values.flatten()]
