"""The replay that a crash of a process would cost: the work of its partitions in no checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ReplayDebts:
    """The debts of a process' partitions, and who stores a checkpoint when all exceed a limit.

    A new owner repeats what is in no checkpoint, and all partitions of a process fail together. So
    it is their sum that bounds a recovery, whatever their number and however long each waits. Above
    the limit the partition with the largest debt stores, one at a time: a checkpoint costs the same
    requests to the store for a small debt as for a large one.

    Invariant: ``owed_ns`` is the sum of the debts of its members.
    """

    def __init__(self, limit_ns: int) -> None:
        """Allow debts of ``limit_ns`` nanoseconds of work in all; 0 for no limit."""
        self._limit_ns = limit_ns
        self._members: dict[ReplayDebt, None] = {}  # in the order in which they joined
        self.owed_ns = 0

    def join(self, wake: Callable[[], None]) -> ReplayDebt:
        """Return the debt of another partition. wake: ends its wait for input."""
        member = ReplayDebt(self, wake)
        self._members[member] = None
        return member

    def changed(self, member: ReplayDebt, by_ns: int) -> None:
        """Take a change of a member's debt; call for a checkpoint where one is due."""
        self.owed_ns += by_ns
        if 0 < self._limit_ns <= self.owed_ns and by_ns > 0:
            largest = max(self._members, key=lambda one: one.owed_ns)
            if not largest.is_called:
                largest.is_called = True
                if largest is not member:
                    largest.wake()

    def leave(self, member: ReplayDebt) -> None:
        """Forget a member: its owner has ended."""
        if member in self._members:
            del self._members[member]
            self.owed_ns -= member.owed_ns


class ReplayDebt:
    """The debt of one partition. is_called: whether it is to store, for the sake of all."""

    def __init__(self, debts: ReplayDebts, wake: Callable[[], None]) -> None:
        self._debts = debts
        self.wake = wake
        self.owed_ns = 0
        self.is_called = False

    def owe(self, owed_ns: int) -> None:
        """Set the work since the last checkpoint, in nanoseconds."""
        by_ns, self.owed_ns = owed_ns - self.owed_ns, owed_ns
        if by_ns:
            self._debts.changed(self, by_ns)

    def begin(self) -> None:
        """Note that a checkpoint of everything is begun."""
        self.owe(0)
        self.is_called = False

    def end(self) -> None:
        """Leave the others."""
        self._debts.leave(self)
