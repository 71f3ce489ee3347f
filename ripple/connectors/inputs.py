"""The contract of inputs: several of them, in an order that depends on the cut alone."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, runtime_checkable

from ripple.connectors.contract import has

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.files.folder.taken import FileRecord
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker, Rejected


class Signal(Enum):
    """The end of an input: more may come, or none will."""

    WAITING = "waiting"
    ENDED = "ended"


class Inputs(Protocol):
    """The inputs of a task, by their names in the engine.

    The order of inputs, and the ends of batches, follow from the cut alone as long as the inputs
    have enough records: a restarted task reads in the same order. Calls that may use a network are
    awaited; ``next`` never waits. One caller at a time. Inputs that end, and have ``never_waits``
    because no call of theirs ever does, need no event loop: a one-shot run reads them as they are.

    The checks at opening are repeated while reading, with each answer: that the input is the same,
    begins no later than the reader's offset, is no shorter than before, and is declared as before.
    So a running task rejects the same inputs as a restarted one. ``next`` raises the error after
    all records before it were handed out:

    - InputAwayError for outages that may end by themselves (no answer, a revoked right), and for
      every doubt that ``check`` can settle. ``open`` may be called again then, and connects anew;
      the caller calls ``check`` before, with the result of ``identities`` (RetryingInputs does).
    - InputError, with a way out, for permanent ones: another stream or history, or records
      removed before they were read.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        ...

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end, where it is known."""
        ...

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs reach ``cut``, with the records read before it.

        InputAwayError if that is unknown.

        identities: per input, the value of ``identities`` then; "" or absent if unknown.
        """
        ...

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that identifies the records before ``cut``, "" if none does.

        It was noted while they were read, and no server is asked: the present input may be another
        one, for which a checkpoint must not vouch.
        """
        ...

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; ``next`` goes on from there, ``rows`` at a time, up to ``stop``."""
        ...

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the batch after ``cut`` and its input, or the reason why there is none.

        ENDED at ``stop``, and at the end of an input that is not followed.
        """
        ...

    async def more(self) -> None:
        """Wait until ``next``, after WAITING, may return something else; it may be too early.

        Cancelling the wait, as when another source is faster, loses nothing.
        """
        ...

    def wake(self) -> None:
        """Let ``more`` return, or its next call if none waits; from the loop's thread."""
        ...

    async def sync(self) -> None:
        """Make the records read so far durable, before a cut that includes them is stored."""
        ...

    async def close(self) -> None:
        """Release connections and files; closing twice is allowed."""
        ...


class Original(NamedTuple):
    """The original of a record, with data that is no field of it: key, headers.

    place: its position, for people. data: all of it, in a form of its connector's.
    """

    place: str
    data: bytes


NO_ORIGINALS: Mapping[int, Original] = MappingProxyType({})


@runtime_checkable
class OriginalInputs(Protocol):
    """Inputs that can return their original records."""

    def originals(self, name: str, offsets: Sequence[int]) -> Mapping[int, Original]:
        """Return records of the batch of input ``name`` that ``next`` returned last, by offset."""
        ...


@runtime_checkable
class FiledInputs(Protocol):
    """Inputs of which one may be several files."""

    def file_at(self, name: str, offset: int) -> str | None:
        """Return the file with a record of input ``name`` that was read, None for another input."""
        ...


def in_files(inputs: object, name: str, rejected: Sequence[Rejected]) -> list[Rejected]:
    """Return records of input ``name`` that were rejected behind it, each with its file."""
    if not isinstance(inputs, FiledInputs):
        return [*rejected]
    return [
        bad if bad.file is not None else replace(bad, file=inputs.file_at(name, bad.offset))
        for bad in rejected
    ]


@runtime_checkable
class KeepingInputs(Protocol):
    """Inputs with a server that retains records until they are acknowledged."""

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let go of unneeded records, by the cut and identities of each checkpoint, newest first.

        All that count are told whenever one was stored, and after ``check`` those from the
        checkpoint of the restore on. It never waits.
        """
        ...


@runtime_checkable
class RecordingInputs(Protocol):
    """Inputs of a source without an inherent order: they record it in a log of their run.

    recorded: the inputs that do. A resuming task gives them their records before ``check``.
    """

    @property
    def recorded(self) -> tuple[str, ...]:
        """The inputs that need a record."""
        ...

    def record_in(self, records: Mapping[str, FileRecord]) -> None:
        """Use these records, by input."""
        ...


def recorded_of(inputs: object) -> tuple[str, ...]:
    """Return the inputs that need a record; () for inputs with an inherent order."""
    return inputs.recorded if isinstance(inputs, RecordingInputs) else ()


@runtime_checkable
class KeyedInputs(Protocol):
    """Inputs that know by which fields records are divided among them."""

    @property
    def keyed_by(self) -> tuple[str, ...] | None:
        """The fields: () for none, None where they are unknown, or it does not matter."""
        ...


@runtime_checkable
class TimedInputs(Protocol):
    """Inputs with a server that knows when records were written."""

    async def since(self, time_ms: int) -> Cut:
        """Return the offsets from which on records were written at a time or later."""
        ...


@runtime_checkable
class EndlessInputs(Protocol):
    """Inputs that may wait for ever for their next record, also in a run without ``follow``."""

    @property
    def ended_by(self) -> str:
        """The code with which they end, for users; "" if they end already."""
        ...


def is_inputs(value: object) -> TypeGuard[Inputs]:
    """Tell whether an object has the methods of inputs."""
    return has(value, "names", "bounds", "open", "next", "more", "wake", "close")


def in_turn(cut: Cut, batch_rows: int, rank: Mapping[str, int]) -> list[str]:
    """Return the inputs of ``cut`` in the order in which they are read next.

    The input with the fewest whole batches of its offsets is first; of several, the first by
    ``rank``. So the order follows from the cut alone.
    """
    return sorted(cut, key=lambda name: (cut[name] // batch_rows, rank[name]))


def keyed_by(inputs: Inputs) -> tuple[str, ...] | None:
    """Return by which fields inputs are divided among their partitions: () by none.

    None where they do not say.
    """
    return inputs.keyed_by if isinstance(inputs, KeyedInputs) else None


def keyed_by_source(sources: Mapping[str, Inputs]) -> dict[str, tuple[str, ...] | None] | None:
    """Return ``keyed_by`` of each source; None where it does not matter.

    That is where one of them has one partition: with it, one task has all records.
    """
    if any(len(each.names) == 1 for each in sources.values()):
        return None
    return {name: keyed_by(each) for name, each in sources.items()}
