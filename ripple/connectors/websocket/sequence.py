"""The numbers of a feed's messages: repetitions and gaps. No I/O."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ripple.core.errors import InputError


class Verdict(Enum):
    """The kind of a message, by its number."""

    NEW = "new"
    REPEATED = "repeated"


class Gap(NamedTuple):
    """The numbers that are missing, both ends included; the message after them is new."""

    first: int
    last: int


class Sequence:
    """Counts messages that are numbered one by one.

    A server that is asked to resume repeats no more than the last message; another one has counted
    on meanwhile. A number is a repetition if it came on the same connection after its first one.
    All others have begun anew.

    Invariant: ``last`` is the highest number so far, None before the first.
    """

    def __init__(self) -> None:
        self.last: int | None = None
        self._asked: int | None = None
        self._first: int | None = None  # of the connection
        self._before: int | None = None  # likewise

    def connected(self, asked: int | None) -> None:
        """Begin a connection. asked: the number after which its server is to resume."""
        self._asked, self._first, self._before = asked, None, None

    def take(self, number: int) -> Verdict | Gap:
        """Classify the message of a number.

        Raises InputError for numbers that start over: new and old ones cannot be told apart.
        """
        before = self.last
        if before is not None and self._is_anew(number, before):
            raise InputError(
                f"the feed's numbers start over: number {number} comes after {before}. Start the "
                "run again; a feed that repeats messages needs WS_RESUME"
            )
        self._before = number
        if self._first is None:
            self._first = number
        if before is not None and number <= before:
            return Verdict.REPEATED
        self.last = number
        if before is None or number == before + 1:
            return Verdict.NEW
        return Gap(before + 1, number - 1)

    def _is_anew(self, number: int, last: int) -> bool:
        if self._first is None or self._before is None:
            return number < self._asked if self._asked is not None else number <= last
        return number <= self._first and number < self._before
