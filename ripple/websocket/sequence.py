"""The numbers of a feed's messages: what has come before, and what never came. No I/O."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ripple.errors import InputError

# In a row; more than any server repeats when it is asked to go on.
REPEATED_MAX = 100_000


class Verdict(Enum):
    """What a message is, by its number."""

    NEW = "new"
    REPEATED = "repeated"


class Gap(NamedTuple):
    """The numbers that are missing, both ends included; the message behind them is new."""

    first: int
    last: int


class Sequence:
    """Counts messages that are numbered one by one.

    Invariant: ``last`` is the highest number so far, None before the first.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        self._repeated = 0

    def take(self, number: int) -> Verdict | Gap:
        """Return what the message of a number is.

        Raises InputError for numbers that have begun anew: what they mean nobody can tell.
        """
        before = self.last
        if before is not None and number <= before:
            self._repeated += 1
            if self._repeated > REPEATED_MAX:
                raise InputError(
                    f"{REPEATED_MAX} messages in a row have numbers up to {before}, which was "
                    "there: the feed counts anew. Start the run again"
                )
            return Verdict.REPEATED
        self.last, self._repeated = number, 0
        if before is None or number == before + 1:
            return Verdict.NEW
        return Gap(before + 1, number - 1)
