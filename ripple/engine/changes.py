"""What an engine shows between two cuts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa

from ripple.frozen import frozen


@frozen
class Changes:
    """All deltas between two cuts.

    outputs: per output of the plan, a record batch of the key, ``op`` (int8: Set 0, Remove 2) and
    the values, null in a Remove; at most one row per key: deltas as :mod:`ripple.delta` takes them.
    Their order is a function of the state at the last cut and of this one: a fold over events of
    one input, without windows, has that of the events; all others go by window start, if the key
    has one, and a hash of the key.
    cut: per input, the next offset to read: what the outputs have reached. watermark_ns: the merged
    watermark, or watermark.NONE. retractions: per output, the rows that were shown and changed, as
    they were, for consumers that withdraw before they correct; only if the engine was asked for
    them. final: per output, the rows that became final, without ``op`` and in no order, whether
    they changed or not; only if asked for (see ``deltas_of`` in ripple.engine.deltas). outgoing:
    per partition of the next stage, what flows there.
    """

    outputs: Mapping[str, pa.RecordBatch]
    cut: Mapping[str, int]
    watermark_ns: int
    retractions: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
    final: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
