"""The contract between the outside and the engine: sources bring batches, sinks take changes.

An *offset* counts the data records of one source from 0; whatever is not a record (comments,
empty lines, a header) has none, and a source may have holes: offsets without a record. A malformed
record has an offset too, so that the number of records applied, late and rejected always equals the
number consumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeGuard

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.batch import Batch, Marker


class Source(Protocol):
    """Where records come from.

    A source is read by one caller at a time. Its records, their offsets and which of them are
    rejected depend on the input alone, never on timing or batch size. Where batches have a size,
    they end at its multiples, so that reading from anywhere comes to the same cuts; they are
    shorter only before a marker and where no more input is there for now.
    """

    name: str

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on, in order, each once.

        ``next_offset`` of a batch is the offset after its last record, rejected ones included, or
        after the hole behind that, and is what to pass as ``from_offset`` to continue after it. No
        batch is empty, unless it says how far a hole reaches. Raises
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
