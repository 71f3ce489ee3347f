"""The traces of one task: from the records of each batch to their changes downstream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.tracing import CONTEXTS_MAX, TracedGroup, TracedInputs, of_records, some
from ripple.model.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ripple.connectors.inputs import Inputs
    from ripple.core.tracing import Span, Tracer
    from ripple.model.batch import Marker


class Traces:
    """Records a task's spans. One batch at a time: ``begin...`` and then ``end``."""

    def __init__(self, tracer: Tracer, *, stage: int, partition: int, group: object) -> None:
        """Tell of a partition. group: its outputs."""
        self._tracer = tracer
        self._stage, self._partition = stage, partition
        self._group = group if isinstance(group, TracedGroup) else None
        self._span: Span | None = None
        self._waiting: dict[str, None] = {}
        self._given: dict[str, None] = {}

    def begin(self, name: str, entry: Batch | Marker, inputs: Inputs) -> None:
        """Begin a batch of an input."""
        contexts: list[str] = []
        if isinstance(inputs, TracedInputs):
            contexts = inputs.contexts(name, entry.next_offset)
        rows = 0
        if isinstance(entry, Batch):
            rows = entry.rows.num_rows
            contexts = contexts or of_records(entry.records)
        self._begin(contexts, rows, is_first=rows > 0)

    def arrived(self, contexts: Iterable[str]) -> None:
        """Note the trace that the next batch of a later stage belongs to."""
        for one in contexts:
            if len(self._waiting) < CONTEXTS_MAX:
                self._waiting[one] = None

    def begin_arrived(self) -> None:
        """Begin a batch of a later stage."""
        contexts = some(self._waiting)
        self._waiting.clear()
        self._begin(contexts, 0, is_first=False)

    def end(self, rows: int) -> None:
        """End the batch, of which so many rows were written."""
        if self._span is None:
            return
        self._span.end(rows)
        for one in self._span.contexts:
            self._given[one] = None
        while len(self._given) > CONTEXTS_MAX:
            del self._given[next(iter(self._given))]
        self._span = None
        if self._group is not None:
            self._group.trace(None)

    def given(self, give: Callable[[tuple[str, ...]], None]) -> None:
        """Give subscribers the traces of the rows offered next."""
        if self._given:
            give(tuple(self._given))
            self._given.clear()

    def _begin(self, contexts: list[str], rows: int, *, is_first: bool) -> None:
        self._span = self._tracer.begin(
            contexts, is_first=is_first, stage=self._stage, partition=self._partition, rows=rows
        )
        if self._span is not None and self._group is not None:
            self._group.trace(self._span.contexts[0])
