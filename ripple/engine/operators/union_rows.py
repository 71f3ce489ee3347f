"""The rows of a union in a batch: those of all branches of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.stream_rows import as_arrow
from ripple.model.pipeline.plan import FLAT_ROWS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from ripple.model.pipeline.plan import Union

    Ints = npt.NDArray[np.int64]


def united(node: Union, branches: Sequence[Rows]) -> Rows:
    """Return the rows of several branches of one batch, record by record.

    Rows of one record are numbered anew, in the order of the branches; a record of which there are
    too many is refused.
    """
    places = _joined(branches, lambda rows: rows.offsets)
    records = places // FLAT_ROWS_MAX
    order = np.argsort(records, kind="stable")
    records = records[order]
    index = np.arange(len(records)) - np.searchsorted(records, records)
    rows = Rows(_columns(node, branches, order), len(order), records * FLAT_ROWS_MAX + index)
    rows.origin = _joined(branches, _origin)[order]
    if branches[0].times_ns is not None:
        rows.times_ns = _joined(branches, lambda one: one.times_ns)[order]
    over = np.flatnonzero(index >= FLAT_ROWS_MAX).tolist()
    rows.reject(dict.fromkeys(over, f"a record has more than {FLAT_ROWS_MAX} rows"), node.name)
    return rows


def _columns(node: Union, branches: Sequence[Rows], order: Ints) -> Columns:
    columns: dict[str, pa.Array] = {}
    for field in arrow_fields(node.fields_out):
        parts = [as_arrow(rows.columns[field.name], field.type) for rows in branches]
        columns[field.name] = pa.concat_arrays(parts).take(pa.array(order))
    return Columns(columns)


def _origin(rows: Rows) -> Ints:
    return np.arange(rows.count) if rows.origin is None else rows.origin


def _joined(branches: Sequence[Rows], of: Callable[[Rows], Any]) -> Ints:
    return np.concatenate([np.asarray(of(rows), np.int64) for rows in branches])
