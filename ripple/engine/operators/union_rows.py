"""The rows of a union in a batch: those of all branches of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.rows import Rows, renumbered
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from ripple.model.pipeline.nodes import Union

    Ints = npt.NDArray[np.int64]


def united(node: Union, branches: Sequence[Rows]) -> Rows:
    """Return the rows of several branches of one batch, record by record.

    Rows of one record are numbered anew, in the order of the branches; a record of which there are
    too many is refused.
    """
    origins = _joined(branches, lambda rows: rows.origins)
    order = np.argsort(origins, kind="stable")
    origins = origins[order]
    places, over = renumbered(_joined(branches, lambda rows: rows.offsets)[order], origins)
    rows = Rows(_columns(node, branches, order), len(order), places)
    rows.origin = origins
    if branches[0].times_ns is not None:
        rows.times_ns = _joined(branches, lambda one: one.times_ns)[order]
    rows.reject(dict.fromkeys(over, f"a record has more than {FLAT_ROWS_MAX} rows"), node.name)
    return rows


def _columns(node: Union, branches: Sequence[Rows], order: Ints) -> Columns:
    columns: dict[str, pa.Array] = {}
    for field in arrow_fields(node.fields_out):
        parts = [arrow_column(rows.columns[field.name], field.type) for rows in branches]
        columns[field.name] = pa.concat_arrays(parts).take(pa.array(order))
    return Columns(columns)


def _joined(branches: Sequence[Rows], of: Callable[[Rows], Any]) -> Ints:
    return np.concatenate([np.asarray(of(rows), np.int64) for rows in branches])
