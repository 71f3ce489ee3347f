"""The contract between the outside and the engine: sources bring batches, sinks take changes.

An *offset* counts the data records of one source from 0; whatever is not a record (comments,
empty lines, a header) has none. A malformed record has an offset too, so that the number of
records applied, late and rejected always equals the number consumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that does not have the declared form.

    ``line_number`` counts physical lines from 1 and is None where there are no lines.
    ``reason`` is one of a few phrases, so that it can be counted; what was seen is in ``raw``,
    which holds at most the first RAW_BYTES_MAX bytes. ``step`` is the pipeline's step that refused
    it, None for what the source refused.
    """

    offset: int
    line_number: int | None
    reason: str
    raw: bytes
    step: str | None = None

    def __post_init__(self) -> None:
        # The words of somebody's exception may hold half a surrogate pair, which is no UTF-8.
        reason = self.reason.encode("utf-8", "backslashreplace").decode()
        object.__setattr__(self, "reason", reason)

    @property
    def place(self) -> str:
        """Where the record stands, in lines where there are lines."""
        return f"offset {self.offset}" if self.line_number is None else f"line {self.line_number}"


RAW_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one source.

    Invariants: ``first_offset + span == next_offset``; every offset of the span belongs to exactly
    one row of ``records`` or one of ``rejected``; both are in offset order.
    """

    records: pa.RecordBatch
    next_offset: int
    rejected: tuple[Rejected, ...] = ()

    @property
    def span(self) -> int:
        """The number of offsets covered, rejected records included."""
        return int(self.records.num_rows) + len(self.rejected)

    @property
    def first_offset(self) -> int:
        """The offset of the first record, good or rejected."""
        return self.next_offset - self.span

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the offset of each row of ``records``, whatever the batching."""
        offsets = np.arange(self.first_offset, self.next_offset, dtype=np.int64)
        if not self.rejected:
            return offsets
        return np.delete(offsets, [bad.offset - self.first_offset for bad in self.rejected])


@dataclass(frozen=True, slots=True)
class Marker:
    """A promise of the source: no event below ``watermark_ns`` follows.

    It takes the one offset before ``next_offset``, so that a cut says whether it has been seen, and
    goes to ``Engine.advance``.
    """

    watermark_ns: int
    next_offset: int


class Source(Protocol):
    """Where records come from.

    A source is read by one caller at a time. Its records, their offsets and which of them are
    rejected depend on the input alone, never on timing or batch size. Where batches have a size,
    they end at its multiples, so that reading from anywhere comes to the same cuts; they are
    shorter only before a marker and where no more input is there for now.
    """

    name: str

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on, in order and without a gap.

        ``next_offset`` of a batch is the offset after its last record, rejected ones included, and
        is what to pass as ``from_offset`` to continue after it. No batch is empty. Raises
        InputError when the input cannot be read, after yielding all that came before the damage.
        A source over a stream that cannot be rewound can be read once.
        """
        ...

    def close(self) -> None:
        """Release files and threads. May be called at any time, and again."""
        ...


class MarkedSource(Protocol):
    """A source with markers among its batches; every Source is one that has none."""

    name: str

    def batches(self, from_offset: int = 0) -> Iterator[Batch | Marker]:
        """Yield batches and markers from ``from_offset`` on; otherwise as Source."""
        ...

    def close(self) -> None:
        """Release files and threads. May be called at any time, and again."""
        ...


def is_source(value: object) -> TypeGuard[MarkedSource]:
    """Tell whether this is a source, by what can be asked of it."""
    return _has(value, "name", "batches", "close")


def is_sink(value: object) -> TypeGuard[Sink]:
    """Tell whether this is a sink, by what can be asked of it."""
    return _has(value, "write", "finish", "abort")


def is_cut_sink(value: object) -> TypeGuard[CutSink]:
    """Tell whether this is a sink that records its cut, by what can be asked of it."""
    return _has(value, "write", "commit", "close")


def _has(value: object, *names: str) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


class Sink(Protocol):
    """Where changes go.

    The calls are ``write*`` and then exactly one of ``finish`` and ``abort``; after an OutputError
    from ``write`` or ``finish`` only ``abort`` may follow.
    """

    def write(self, changes: pa.RecordBatch) -> None:
        """Take one output's changes between two cuts, in order.

        A leading int8 column ``op`` says what each row is: Set, Patch or Remove; without it all
        rows are Set. Raises OutputError, which names the target.
        """
        ...

    def finish(self) -> None:
        """Make everything written visible and durable, as far as the target can."""
        ...

    def abort(self) -> None:
        """Leave nothing half-written behind, as far as the target can. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Commit:
    """What an output has reached, as a sink records it beside the data.

    cut: per input, the next offset to read. digest: of the output's table at that cut.
    """

    cut: Mapping[str, int]
    digest: str


class CutSink(Protocol):
    """A sink that knows, after any crash, how far its data reach.

    Changes of one cut are either all behind ``committed`` or all before it. Opening cuts off what
    was written after the last commit, so that it can be written again; where that cannot be done
    (a log has readers), what is there counts as committed, and ``unfinished`` is set if the changes
    of the last cut are there only in part.
    """

    name: str
    records_cut: bool
    """False of a stream, which keeps nothing: its ``committed`` is None for ever."""

    committed: Commit | None
    """What is durable; None where nothing ever was."""

    cut_off_bytes: int
    """How much opening has cut off: what was written after the last commit, or torn by a crash."""

    promise: str
    """What a reader may rely on, in words: "each cut once", or why not."""

    @property
    def unfinished(self) -> Mapping[str, int] | None:
        """A cut whose changes are there in part: the next ``write`` must reach exactly it."""
        ...

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Take one output's changes since the last write, and what they reach.

        After an error the same call may be repeated. Raises OutputError and OSError.
        """
        ...

    def commit(self, reached: Commit) -> None:
        """Make durable all that was written, and that it reaches ``reached``.

        After an OSError it may be repeated, unless the system could not sync: then whatever comes
        fails, and a sink opened anew knows what is durable.
        """
        ...

    def close(self) -> None:
        """Release the target as it is, without a commit; closing twice is allowed."""
        ...


OP_SET, OP_PATCH, OP_REMOVE = 0, 1, 2
OP_NAMES = ("set", "patch", "remove")


def split_op(changes: pa.RecordBatch) -> tuple[pa.Array | None, pa.RecordBatch]:
    """Separate the leading ``op`` column, if there is one, from the row columns."""
    schema = changes.schema
    if not len(schema) or schema.field(0).name != "op" or schema.field(0).type != pa.int8():
        return None, changes
    return changes.column(0), changes.select(range(1, len(schema)))


def with_named_ops(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Return the changes with ``op`` as text, one of OP_NAMES, as the first column."""
    op, rows = split_op(changes)
    op = pa.array(np.zeros(rows.num_rows, np.int8)) if op is None else op
    # Built here: pa.array of Python values imports pandas where that is installed.
    names = pa.array(OP_NAMES).take(op)
    return pa.RecordBatch.from_arrays([names, *rows.columns], ["op", *rows.schema.names])
