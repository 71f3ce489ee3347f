"""The event times of deletions that tell none: the newest one of their input before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind
from ripple.model.window import watermark

if TYPE_CHECKING:
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import SourceSpec

_TIME_NS_MAX = watermark.EVENT_TIME_NS_MAX
_TIME_NS_MIN = -_TIME_NS_MAX - 1


def give_times(rows: Rows, source: SourceSpec, watermark_ns: int, ahead_ns: int) -> None:
    """Give each deletion without an event time the newest one of its input so far.

    So it is a function of the input's prefix, and never late. Rejects those before any time.
    watermark_ns: of the input before these rows. ahead_ns: how far ahead of it a time counts.
    """
    name = source.time_field
    if name is None or rows.columns.valid(name) is None:
        return
    times = numbers(rows.columns[name], Kind.INT)
    assert times.valid is not None, "a deletion lacks its time"
    delay_ns, found = source.out_of_order_ns, np.array(times.values, np.int64)
    untimed: dict[int, str] = {}
    for at, (time_ns, is_there) in enumerate(
        zip(found.tolist(), times.valid.tolist(), strict=True)
    ):
        is_known = watermark_ns != watermark.NONE
        if not is_there:
            found[at] = min(max(watermark_ns + delay_ns, _TIME_NS_MIN), _TIME_NS_MAX)
            if not is_known:
                untimed[at] = f"a deletion without {name!r} comes before any record with it"
        elif _TIME_NS_MIN <= time_ns <= _TIME_NS_MAX and not (
            is_known and time_ns > watermark_ns + ahead_ns
        ):
            watermark_ns = max(watermark_ns, time_ns - delay_ns)
    rows.columns.add({name: Values(found)})
    rows.reject(untimed, source.name)
