"""The contract of what a life reads: several inputs, in an order that depends on the cut alone."""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, runtime_checkable

from ripple.connectors.contract import has

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker


class Signal(Enum):
    """What there is where no entry is: more may come, or none will."""

    WAITING = "waiting"
    ENDED = "ended"


class Inputs(Protocol):
    """The inputs of a life, by the names that the engine knows them by.

    Whose turn it is, and where batches end, follows from the cut alone as long as the inputs have
    what is asked for: a life reads on in the order in which the one before would have. What may ask
    a network is awaited; ``next`` never waits. One caller at a time.

    What is checked when they are opened is checked while they are read, with each answer: that it
    is what was read before, that it begins no later than where they are, that it is as long as it
    was, that it is declared as it was. So a life that goes on refuses what a restarted one refuses.
    Whatever is found out is raised by ``next``, once all is handed out that came before:

    - InputAwayError for what may come back by itself (no answer, a right that was taken), and for
      every doubt that ``check`` can settle. ``open`` may be called again then, and connects anew;
      whoever waits calls ``check`` before, with what ``identities`` says (RetryingInputs does).
    - InputError, with a way out, for what will not: another stream or history in its place, records
      that were removed before they were read.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        ...

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end, where it is known."""
        ...

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs reach ``cut``, by what was read when it was stored.

        InputAwayError where nobody can say.

        identities: per input, what ``identities`` returned then; nothing for an unknown one.
        """
        ...

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that tells what was read up to ``cut``, "" if nothing does.

        It is what was noted as that was read, and nobody is asked for it: what is there now may be
        another input, for which a checkpoint must not vouch.
        """
        ...

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; ``next`` goes on from there, ``rows`` at a time, up to ``stop``."""
        ...

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return what comes after ``cut``, and of which input; or why nothing does.

        ENDED at ``stop``, and where an input that is not followed has no more.
        """
        ...

    async def more(self) -> None:
        """Wait until ``next``, which said WAITING, may have more to say; it may be too early."""
        ...

    def wake(self) -> None:
        """Let ``more`` return, or its next call if nobody waits; from the loop's thread."""
        ...

    async def sync(self) -> None:
        """Make durable what was read, before a cut that includes it is stored."""
        ...

    async def close(self) -> None:
        """Release what was opened; closing twice is allowed."""
        ...


class Original(NamedTuple):
    """A record as it was where it came from, with what is no field of it: key, headers.

    place: where it lies, for people. data: all of it, in a form of its connector's.
    """

    place: str
    data: bytes


NO_ORIGINALS: Mapping[int, Original] = MappingProxyType({})


@runtime_checkable
class OriginalInputs(Protocol):
    """Inputs that can tell what their records were."""

    def originals(self, name: str, offsets: Sequence[int]) -> Mapping[int, Original]:
        """Return records of the batch of input ``name`` that ``next`` returned last, by offset."""
        ...


@runtime_checkable
class KeepingInputs(Protocol):
    """Inputs whose server keeps what was read until it is told that nobody will read it again."""

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let go what no checkpoint needs: of each the cut and its identities, newest first.

        All that count are told whenever one was stored, and after ``check`` those from the one that
        is gone on from. It never waits.
        """
        ...


def is_inputs(value: object) -> TypeGuard[Inputs]:
    """Tell whether these are inputs, by what can be asked of them."""
    return has(value, "names", "bounds", "open", "next", "more", "wake", "close")


def in_turn(cut: Cut, batch_rows: int, rank: Mapping[str, int]) -> list[str]:
    """Return the inputs of ``cut`` in the order in which they have their turn.

    It is the turn of who has had the fewest whole batches of its offsets; of several, of the first
    by ``rank``. So it follows from the cut alone.
    """
    return sorted(cut, key=lambda name: (cut[name] // batch_rows, rank[name]))


def keyed_by(inputs: Inputs) -> tuple[str, ...] | None:
    """Return by which fields inputs are divided among their partitions: () by none.

    None where they do not say: only some know, in a property of this name.
    """
    found: tuple[str, ...] | None = getattr(inputs, "keyed_by", None)
    return found
