"""The contract between the outside and the engine: sources bring batches, sinks take changes.

An *offset* counts the data records of one source from 0; whatever is not a record (comments,
empty lines, a header) has none, and a source may have holes: offsets without a record. A malformed
record has an offset too, so that the number of records applied, late and rejected always equals the
number consumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, runtime_checkable

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.model.batch import Batch, Marker


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
    return has(value, "name", "batches", "close")


def is_sink(value: object) -> TypeGuard[Sink]:
    """Tell whether this is a sink, by what can be asked of it."""
    return has(value, "name", "records_cut", "committed", "write", "commit", "close")


def has(value: object, *names: str) -> bool:
    """Tell whether this is no class and has all attributes."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


class Commit(NamedTuple):
    """What an output has reached, as a sink that can be continued records it beside the data.

    cut: per input, the next offset to read. digest: of the output's table at that cut; empty in a
    ``write`` to a sink that records no cut. watermarks_ns: of each input at that cut, for whoever
    looks from outside; None where nobody says, and where it was read back.
    """

    cut: Mapping[str, int]
    digest: str
    watermarks_ns: Mapping[str, int] | None = None


NOWHERE = Commit({}, "")
"""What rows have reached that are of no input."""


class Sink(Protocol):
    """Where the changes of one output go.

    The calls are ``write*`` and ``commit`` in turns, and ``close`` at the end. A plain run commits
    once, when its input has ended; ``close`` without a commit gives up what was written, as far as
    the target can: a file is as it was.

    A sink that records its cut knows, after any crash, how far its data reach: changes of one cut
    are either all behind ``committed`` or all before it. Opening it cuts off what was written after
    the last commit, so that it can be written again; where that cannot be done (a log has readers),
    what is there counts as committed, and ``unfinished`` is set if the changes of the last cut are
    there only in part. Its ``close`` leaves what was written as it is.
    """

    name: str
    """Of the place, for people."""

    records_cut: bool
    """False of what a restarted pipeline cannot continue: its ``committed`` is None for ever."""

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
        """Take one output's changes since the last write, in order, and what they reach.

        The columns are the key, ``op`` (int8, see ripple.core.row_ops: Set, Patch or Remove) and
        the values,
        null in a Remove; without ``op`` all rows are Set. Where the sink records its cut, the same
        call may be repeated after an error. Raises OutputError, which names the target, and
        OSError.
        """
        ...

    def commit(self, reached: Commit) -> None:
        """Make visible and durable all that was written, and that it reaches ``reached``.

        After an OSError it may be repeated where the sink records its cut, unless the system could
        not sync: then whatever comes fails, and a sink opened anew knows what is durable.
        """
        ...

    def close(self) -> None:
        """Release the target; what was not committed may be gone. Closing twice is allowed."""
        ...


class ReadableSink(Sink, Protocol):
    """A sink that tells what it was written: what a partition needs that cannot repeat its cuts."""

    def mark(self) -> str:
        """Return where the sink is now, in a form of its own."""
        ...

    def written_since(self, mark: str | None) -> Iterator[pa.RecordBatch]:
        """Yield what readers may have got behind a mark, from the beginning without one.

        ``op`` is text, one of OP_NAMES. Raises OutputError for a mark of another place.
        """
        ...

    def supersede(self) -> None:
        """Let the next ``write`` reach another cut than the ``unfinished`` one, beyond it.

        What is there of that stays, and readers have seen it: the caller makes it right.
        """
        ...


@runtime_checkable
class KnowingSink(Protocol):
    """A sink that can tell which keys its readers have, without what they have of them."""

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the fields ``key`` of rows, and ``op`` as text: what is there, or newest last.

        Types may be those that the place has. Raises OutputError.
        """
        ...


def is_readable_sink(value: object) -> TypeGuard[ReadableSink]:
    """Tell whether a sink can be read back, by what can be asked of it."""
    return has(value, "mark", "written_since", "supersede")


class BasicSink:
    """A sink that records no cut, with everything but ``write``: what a sink of your own needs.

    ``write`` takes the changes as they come. Override ``commit`` where something must be made
    durable, and ``close`` where something must be released, or given up without a commit. Started
    again, a run may write what it has written already: effectively once only where the target
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
        """Do nothing: what was written is where it goes."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
