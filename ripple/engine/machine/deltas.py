"""Deltas for subscribers of a view: its changes and its newly final rows, in one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.core.row_ops import OP, OP_FINAL
from ripple.engine.changes.columns import compose
from ripple.engine.changes.layout import layout_of

if TYPE_CHECKING:
    from ripple.engine.machine.changes import Changes


def deltas_of(changes: Changes, output: str) -> pa.RecordBatch:
    """Return an output's changes as deltas, those of rows that became final as Final.

    At most one row per key: changed rows, in their order, then unchanged final ones, in no order.
    ``layout_of`` its schema is its layout. Raises InputError for another output, and if the engine
    was not asked for ``finals``: followers would keep rows for ever.
    """
    if output not in changes.outputs:
        raise InputError(f"no output {shown(output)}: they are {list(changes.outputs)}")
    if output not in changes.final:
        raise InputError(f"output {output!r}: final rows are reported with finals=True only")
    changed, final = changes.outputs[output], changes.final[output]
    layout = layout_of(changed.schema)
    if not final.num_rows:
        return layout.conform(changed)
    ops = pa.array(np.full(final.num_rows, OP_FINAL, np.int8))
    columns = [ops if name == OP else final.column(name) for name in changed.schema.names]
    finals = pa.RecordBatch.from_arrays(columns, schema=changed.schema)
    return compose(layout, changed, finals)
