"""What an engine shows between two cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.frozen import frozen

if TYPE_CHECKING:
    from ripple.schema.exported import Made


class Shown(Mapping[str, pa.RecordBatch]):
    """Record batches by output, which become Arrow's when they are asked for.

    made: the same for those who take them as they were made.
    """

    __slots__ = ("made",)

    def __init__(self, made: Mapping[str, Made]) -> None:
        self.made = made

    def __getitem__(self, output: str) -> pa.RecordBatch:
        return self.made[output].arrow()

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def __repr__(self) -> str:
        return repr(dict(self))


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

    outputs: Shown
    cut: Mapping[str, int]
    watermark_ns: int
    retractions: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
    final: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
