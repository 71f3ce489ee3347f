"""Rows that a node held at a cut, dumped piece by piece while others come and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_VALUES_AT_ONCE = 1 << 16
"""So many are copied in less than a millisecond, however wide the rows are."""


class Numbers(Protocol):
    """Numbers of rows, a piece at a time."""

    @property
    def count(self) -> int:
        """How many are left."""

    def next(self, most: int) -> Ints:
        """Return the next ones, at most so many."""


class HeldSaving:
    """The rows of a table that is no fold's: some that were dumped at once, then some by steps.

    Invariant: until all are dumped, none of these rows is dropped, so that each has its number.
    """

    def __init__(
        self,
        schema: pa.Schema,
        known: Sequence[pa.RecordBatch],
        numbers: Sequence[Numbers],
        batches: Callable[[Ints], list[pa.RecordBatch]],
        count: int,
    ) -> None:
        """Dump rows. known: the first ones. batches: of the rows with ``numbers``.

        count: how many rows there are, needed ones or not.
        """
        self.count = count
        self._schema, self._batches = schema, batches
        self._numbers = [one for one in numbers if one.count]
        self._parts = [[*known], *([] for _ in self._numbers)]
        self._at = 1

    @property
    def is_complete(self) -> bool:
        """Whether all rows are dumped."""
        return not self._numbers

    def step(self, most: int) -> bool:
        """Dump up to a number of rows, fewer wide ones; return whether none is left."""
        if self._numbers:
            numbers = self._numbers[0]
            most = min(most, 1 + _VALUES_AT_ONCE // len(self._schema))
            self._parts[self._at] += self._batches(numbers.next(most))
            if not numbers.count:
                del self._numbers[0]
                self._at += 1
        return self.is_complete

    def complete(self) -> None:
        """Dump all rows."""
        while self._numbers:
            self.step(self._numbers[0].count)

    def table(self) -> pa.Table:
        """Return all rows; to be called once, when they are dumped.

        It may run in a thread, where the memory of the parts is freed.
        """
        assert self.is_complete
        (known, *parts), self._parts = self._parts, []
        tables = [pa.Table.from_batches(part, self._schema).combine_chunks() for part in parts]
        found = [pa.Table.from_batches(known, self._schema), *tables]
        return pa.concat_tables([one for one in found if one.num_rows] or found[:1])


class Sorted:
    """Numbers that are put in order when the first ones are asked for."""

    def __init__(self, numbers: Ints, order: Callable[[Ints], Ints]) -> None:
        """order: returns numbers in their order."""
        self.count = len(numbers)
        self._numbers, self._order = numbers, order
        self._is_sorted = False

    def next(self, most: int) -> Ints:
        """Return the next ones, at most so many."""
        if not self._is_sorted:
            self._numbers, self._is_sorted = self._order(self._numbers), True
        at = len(self._numbers) - self.count
        self.count -= min(most, self.count)
        return self._numbers[at : len(self._numbers) - self.count]


class Dumped:
    """A whole table."""

    is_complete = True

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def step(self, most: int) -> bool:
        """Return True: nothing is left."""
        del most
        return True

    def table(self) -> pa.Table:
        """Return it."""
        return self._table
