"""Repartitioned records on their way to the targets, as they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.snapshots.internal import internal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.engine.machine.inputs import Input
    from ripple.model.pipeline.nodes import SourceSpec

    Ints = npt.NDArray[np.int64]


OFFSET, WATERMARK = internal("offset"), internal("watermark_ns")


class WaitingRows:
    """Records of a source, until their targets take them, with offset and the watermark after.

    Targets are numbered by (input, partition of the first stage): ``input * partitions +
    partition``. Invariant: ``_since[t]`` is the cut of target t's last batch, None before the
    first.
    """

    def __init__(self, inputs: Mapping[str, Input], source: SourceSpec, partitions: int) -> None:
        self._inputs = dict(inputs)
        self._numbers = {name: number for number, name in enumerate(inputs)}
        self.partitions = partitions
        own = [pa.field(name, pa.int64()) for name in (OFFSET, WATERMARK)]
        self._schema = pa.schema([*arrow_fields(source.fields), *own])
        self._none = pa.RecordBatch.from_pylist([], self._schema)
        self.targets = len(inputs) * partitions
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(self.targets)]
        self._since: list[Cut | None] = [None] * self.targets
        self.held_bytes = 0
        """How much waits, of all targets."""

    def add(self, name: str, columns: Sequence[pa.Array], numbers: Ints) -> None:
        """Add records of an input, for the partitions with these numbers."""
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        first = self._numbers[name] * self.partitions
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        ordered = rows.take(pa.array(order))
        for number, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
            part = ordered.slice(start, end - start)
            self._waiting[first + number].append(part)
            self.held_bytes += part.nbytes

    def resume(self, cut: Cut) -> None:
        """Resume from a snapshot: from here on rows are those since its cut."""
        self._since = [cut] * self.targets

    def take(self, cut: Cut, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the rows waiting for these targets. Raises InputError for an unknown one."""
        for target in targets:
            if not 0 <= target < self.targets:
                raise InputError(f"no partition {target!r} of a next stage follows this one")
        given = {}
        for target in targets:
            waiting, self._waiting[target] = self._waiting[target], []
            self.held_bytes -= sum(rows.nbytes for rows in waiting)
            rows = pa.concat_batches(waiting) if waiting else self._none
            name = list(self._inputs)[target // self.partitions]
            watermark_ns = self._inputs[name].watermark_ns
            given[target] = EdgeChanges(self._since[target], cut, watermark_ns, rows)
            self._since[target] = cut
        return given
