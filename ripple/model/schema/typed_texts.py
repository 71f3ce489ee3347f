"""Marked texts: values of dates and times in a source with a declared pattern for its texts.

A pattern may leave out parts of a value, so no text of the pattern stands for it. Its text is that
of ISO 8601 behind a mark, which no pattern matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from ripple.model.schema.text_columns import where_found

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

MARK = "\0"


class _Iso(Protocol):
    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]: ...


def marked(column: pa.Array) -> pa.Array:
    """Return texts of ISO 8601 with the mark."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    return pc.binary_join_element_wise(MARK, column, "")


def with_marked(
    column: pa.Array, values: pa.Array, failed: Mask, iso: _Iso
) -> tuple[pa.Array, Mask]:
    """Return the values of a column of texts also where they are marked, and the failed rows."""
    if not failed.any():
        return values, failed
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    rows = np.flatnonzero(failed)
    texts = column.take(pa.array(rows))
    is_marked = pc.starts_with(texts, MARK)
    if not pc.any(is_marked).as_py():
        return values, failed
    rows = rows[np.asarray(is_marked)]
    own, bad = iso.parsed(pc.utf8_slice_codeunits(texts.filter(is_marked), 1))
    numbers: npt.NDArray[Any] = np.array(values.fill_null(0), np.int64)
    numbers[rows] = own.fill_null(0)
    found = ~failed
    found[rows] = ~bad
    return where_found(numbers, found, column)
