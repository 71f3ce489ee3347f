"""The contract between the outside and the engine: sources bring batches, sinks take changes.

An *offset* counts the data records of one source from 0. Comments, empty lines and a header have
none, and a source may have holes: offsets without a record. A malformed record has an offset too,
so that the number of records applied, late and rejected always equals the number consumed.
"""

from __future__ import annotations

from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, runtime_checkable

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.core.errors import RippleError
    from ripple.model.batch import Batch, Marker

_ASYNC = CO_COROUTINE | CO_ASYNC_GENERATOR


class Source(Protocol):
    """An input that ends, in its simplest form: a one-shot run makes Inputs of it.

    A source is read by one caller at a time. Its records, their offsets and which of them are
    rejected depend on the input alone, never on timing or batch size. Where batches have a size,
    they end at its multiples, so that reading from anywhere comes to the same cuts; they are
    shorter only before a marker and where no more input is there for now.
    """

    name: str

    def batches(self, from_offset: int = 0) -> Iterator[Batch | Marker]:
        """Yield the records from ``from_offset`` on, in order, each once, and markers among them.

        ``next_offset`` of a batch is the offset after its last record, rejected ones included, or
        after the hole that follows, and is the ``from_offset`` to continue with. No batch is empty,
        unless it marks the end of a hole. Raises InputError when the input cannot be read, after
        yielding all records before the damage. A source over a stream that cannot be rewound can
        be read once.
        """
        ...

    def close(self) -> None:
        """Release files and threads. May be called at any time, and again."""
        ...


MarkedSource = Source
"""Its name where it has markers, from before every source might have them."""


def is_source(value: object) -> TypeGuard[Source]:
    """Tell whether an object has the methods of a source."""
    return has(value, "name", "batches", "close")


def is_sink(value: object) -> TypeGuard[Sink]:
    """Tell whether an object has the methods of a sink."""
    return has(value, "name", "records_cut", "committed", "write", "commit", "close")


def has(value: object, *names: str) -> bool:
    """Tell whether this is no class and has all attributes."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


def check_not_async(kind: str, value: Source | Sink, error: type[RippleError]) -> None:
    """Raise ``error`` for a source or sink with an async method, which no caller would await."""
    for name in ("batches", "write", "commit", "close"):
        given = getattr(value, name, None)
        code = getattr(given, "__code__", None)
        if given is None or (code is not None and not code.co_flags & _ASYNC):
            continue  # nearly all, at once
        if iscoroutinefunction(given) or isasyncgenfunction(given):
            raise error(
                f"{kind} {value.name!r}: {name} is async, and is called without await: write def "
                f"{name}"
            )


class Commit(NamedTuple):
    """The state of an output that a resumable sink records with its data.

    cut: per input, the next offset to read. digest: of the output's table at that cut; empty in a
    ``write`` to a sink that records no cut. watermarks_ns: of each input at that cut, for external
    readers; None if unknown, or read back.
    """

    cut: Mapping[str, int]
    digest: str
    watermarks_ns: Mapping[str, int] | None = None


NOWHERE = Commit({}, "")
"""The cut of rows that come from no input."""


class Sink(Protocol):
    """The target of one output's changes.

    The calls are ``write*`` and ``commit`` in turns, and ``close`` at the end. A one-shot run
    commits once, when its input has ended; ``close`` without a commit discards the changes, as far
    as the target can: a file is unchanged.

    A sink that records its cut knows, after any crash, how far its data reach: changes of one cut
    are either all after ``committed`` or all before it. Opening it cuts off changes after the last
    commit, so that they can be written again. A sink that cannot do that (a log has readers)
    counts them as committed, and sets ``unfinished`` if it has the last cut's changes in part.
    Its ``close`` leaves written changes as they are.
    """

    name: str
    """Of the target, for people."""

    records_cut: bool
    """False of a target that a restart cannot continue: its ``committed`` is None for ever."""

    committed: Commit | None
    """The last durable commit; None before the first."""

    cut_off_bytes: int
    """The number of bytes cut off at opening: uncommitted ones, or torn by a crash."""

    promise: str
    """The guarantee to readers, in words: "each cut once", or the reason for less."""

    @property
    def unfinished(self) -> Mapping[str, int] | None:
        """A cut with only part of its changes written: the next ``write`` must reach exactly it."""
        ...

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Take one output's changes since the last write, in order, and the cut that they reach.

        The columns are the key, ``op`` (int8, see ripple.core.row_ops: Set, Patch or Remove) and
        the values,
        null in a Remove; without ``op`` all rows are Set. Where the sink records its cut, the same
        call may be repeated after an error. Raises OutputError, which names the target, and
        OSError.
        """
        ...

    def commit(self, reached: Commit) -> None:
        """Make all written changes visible and durable, with the cut ``reached``.

        After an OSError it may be repeated if the sink records its cut, unless the system could
        not sync: then every call fails, and a sink opened anew knows the durable cut.
        """
        ...

    def close(self) -> None:
        """Release the target; uncommitted changes may be lost. Closing twice is allowed."""
        ...


class ReadableSink(Sink, Protocol):
    """A sink that returns its written changes, for partitions that cannot repeat their cuts."""

    def mark(self) -> str:
        """Return the sink's position now, in a form of its own."""
        ...

    def written_since(self, mark: str | None) -> Iterator[pa.RecordBatch]:
        """Yield the changes that readers may have got after a mark, or all without one.

        ``op`` is text, one of OP_NAMES. Raises OutputError for a mark of another target.
        """
        ...

    def supersede(self) -> None:
        """Let the next ``write`` reach a later cut than the ``unfinished`` one.

        Readers have seen its partial changes, which stay: the caller reconciles them.
        """
        ...


class RestingSink(ReadableSink, Protocol):
    """The sink of a partition that another one takes over."""

    is_at_rest: bool
    """Whether the partition has no rows for its readers."""

    def rest(self, removed: pa.RecordBatch) -> None:
        """Remove its rows, and release it. Raises OutputError and OSError."""
        ...


@runtime_checkable
class KnowingSink(Protocol):
    """A sink that can tell its readers' keys, without their values."""

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the fields ``key`` of rows, and ``op`` as text: the rows, or changes newest last.

        Types may be those of the target. Raises OutputError.
        """
        ...


def is_readable_sink(value: object) -> TypeGuard[ReadableSink]:
    """Tell whether an object has the methods of a sink that can be read back."""
    return has(value, "mark", "written_since", "supersede")


class BasicSink:
    """A sink that records no cut, with everything but ``write``: the base of a sink of your own.

    ``write`` takes the changes as they come. Override ``commit`` where something must be made
    durable, and ``close`` where something must be released, or given up without a commit. Started
    again, a run may write some rows again: effectively once only where the target
    takes the same row twice for one.
    """

    name: str = "a sink"
    records_cut: bool = False
    committed: Commit | None = None
    unfinished: Mapping[str, int] | None = None
    cut_off_bytes: int = 0
    promise: str = "rows since the last checkpoint may be repeated after a restart"

    def __init_subclass__(cls) -> None:
        """Name the sink by its class, unless it says otherwise."""
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Take one output's changes since the last write; see Sink."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it writes")

    def commit(self, reached: Commit) -> None:
        """Do nothing: writes are immediate."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
