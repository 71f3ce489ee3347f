"""The result rows that cannot be computed: absent from their table, counted, and named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.core.frozen import frozen
from ripple.model.keys.space import KeySpace

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

ROWS_NAMED_MAX = 10  # of each fold; all are counted
REASON_LENGTH_MAX = 500  # characters


class Failure(NamedTuple):
    """Why there is no row: the step or the fold that could not compute it, and its reason."""

    step: str
    reason: str

    @classmethod
    def of(cls, step: str, reason: object) -> Failure:
        """Return a failure with a reason fit for every row: not too long, and UTF-8."""
        text = str(reason)[:REASON_LENGTH_MAX]
        return cls(step, text.encode("utf-8", "backslashreplace").decode()[:REASON_LENGTH_MAX])


@frozen
class UncomputableRow:
    """A row that is not there.

    key: its key fields, then its window's start if it has one, or the time of an event. step: which
    step on the results, which fold (its own, when an aggregate has no result; the one above, when
    that cannot take the row in).
    """

    key: tuple[Any, ...]
    step: str
    reason: str


@frozen
class Uncomputable:
    """The rows of one fold that cannot be computed at a cut, or not be folded by the fold above.

    count: all of them. final: how many of these will stay so, because their windows are over.
    rows: up to ROWS_NAMED_MAX, the first by key.
    """

    count: int
    final: int
    rows: tuple[UncomputableRow, ...]


class UncomputableRows:
    """Remembers, by slot, which rows could not be computed when they were computed last.

    Invariants: a slot in ``failures`` is live, and no row came of it; ``final`` counts the freed
    ones, and ``_final_rows`` has the first of them by key, as far as this process saw them.
    """

    def __init__(self, space: KeySpace) -> None:
        self._space = space
        self.failures: dict[int, Failure] = {}
        self.final = 0
        self._final_rows: list[UncomputableRow] = []

    def __len__(self) -> int:
        return len(self.failures) + self.final

    def note(self, slots: Ints, failed: Mapping[int, Failure]) -> None:
        """Take notice that ``slots`` were computed anew, and of the ``failed`` ones among them."""
        if self.failures:
            self.forget(slots)
        if failed:
            self.failures.update(failed)

    def forget(self, slots: Ints) -> None:
        """Take notice that there is nothing to compute at ``slots``, or that it could be."""
        if self.failures:
            for slot in slots.tolist():
                self.failures.pop(slot, None)

    def finalize(self, slots: Ints) -> None:
        """Count those of ``slots``, which are about to be freed: they stay as they are."""
        if not self.failures:
            return
        over = [slot for slot in slots.tolist() if slot in self.failures]
        if over:
            self.final += len(over)
            gone = {slot: self.failures[slot] for slot in over}
            self._final_rows = first_rows((*self._final_rows, *self._named(gone)))
            self.forget(np.array(over, np.int64))

    def lose(self, rows: Iterable[UncomputableRow]) -> None:
        """Count final rows that a step in a stream cannot take."""
        lost = list(rows)
        self.final += len(lost)
        self._final_rows = first_rows((*self._final_rows, *lost))

    def named(self) -> list[UncomputableRow]:
        """Return up to ROWS_NAMED_MAX rows, the first by key."""
        return first_rows((*self._final_rows, *self._named(self.failures)))

    def _named(self, failed: Mapping[int, Failure]) -> Iterable[UncomputableRow]:
        if not failed:
            return
        arrays = self._space.arrays(np.array([*failed], np.int64))
        keys = zip(*(array.to_pylist() for array in arrays), strict=True) if arrays else [()]
        for failure, key in zip(failed.values(), keys, strict=False):
            yield UncomputableRow(key, *failure)

    # --- snapshots, of state that cannot be computed again ---

    def dump(self, slots: Ints) -> tuple[pa.Array, pa.Array]:
        """Return step and reason of each slot, null where nothing failed."""
        found = [self.failures.get(slot, (None, None)) for slot in slots.tolist()]
        steps, reasons = zip(*found, strict=True) if found else ((), ())
        return pa.array(steps, pa.string()), pa.array(reasons, pa.string())

    def load(self, slots: Ints, steps: pa.ChunkedArray, reasons: pa.ChunkedArray) -> None:
        """Load the columns of ``dump``."""
        rows = zip(slots.tolist(), steps.to_pylist(), reasons.to_pylist(), strict=True)
        self.failures.update({slot: Failure(s, r) for slot, s, r in rows if s is not None})


def first_rows(rows: Iterable[UncomputableRow]) -> list[UncomputableRow]:
    """Return up to ROWS_NAMED_MAX of ``rows``, the first by key."""
    return nsmallest(ROWS_NAMED_MAX, rows, key=lambda row: nulls_first(row.key))


def nulls_first(key: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """Return the order of keys of which some fields may be null."""
    return tuple((part is not None, part) for part in key)
