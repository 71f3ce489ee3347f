"""Spans of a task's batches, to trace an event through processes.

The contract between a task and an optional tracer: a batch with an event of a trace, or one sampled
to begin a trace, is a span of it, and so is each batch of a later stage that takes in the span's
changes. A context is the text of a W3C ``traceparent``. Nothing here changes a result: contexts
travel apart from the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

FIELD = "traceparent"
"""The name of a Kafka header, and of a text field of records that have no headers."""

CONTEXTS_MAX = 8
"""Of one batch, and of one batch to a later stage; others are dropped."""

CONTEXT_LENGTH_MAX = 256


class Span(Protocol):
    """One batch's part of one or several traces.

    contexts: one for each trace, for later spans.
    """

    @property
    def contexts(self) -> tuple[str, ...]:
        """The contexts for later spans."""

    def end(self, rows: int) -> None:
        """End now. rows: the number written."""


class Tracer(Protocol):
    """Makes spans."""

    def begin(
        self, contexts: Sequence[str], *, is_first: bool, stage: int, partition: int, rows: int
    ) -> Span | None:
        """Begin a span where one of the contexts is sampled, or where a trace begins; else None.

        is_first: whether a trace may begin here. rows: that were taken in.
        """


@runtime_checkable
class TracedInputs(Protocol):
    """Inputs with contexts in their records."""

    def trace(self) -> None:
        """Keep the contexts of records from the next ``open`` on."""

    def contexts(self, name: str, next_offset: int) -> list[str]:
        """Return those of the records of an input before an offset, each once, and forget them."""


@runtime_checkable
class TracedGroup(Protocol):
    """Outputs with a context in their records."""

    def trace(self, context: str | None) -> None:
        """Take the context of rows written from now on."""


def of_records(records: pa.RecordBatch) -> list[str]:
    """Return the contexts that stand in a field of records, the first of them, each once."""
    at = records.schema.get_field_index(FIELD)
    if at < 0 or not records.num_rows:
        return []
    return some(one for one in records.column(at).drop_null().slice(0, 64).unique().to_pylist())


def some(contexts: Iterable[object]) -> list[str]:
    """Return the first contexts of any values, each once."""
    found: dict[str, None] = {}
    for one in contexts:
        if isinstance(one, str) and 0 < len(one) <= CONTEXT_LENGTH_MAX:
            found[one] = None
            if len(found) == CONTEXTS_MAX:
                break
    return list(found)
