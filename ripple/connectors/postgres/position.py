"""Where changes stand in the log of a server: behind how many of which transaction."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"([0-9A-F]+)/([0-9A-F]+)(?:\+([0-9]+))?")


class Position(NamedTuple):
    """Behind ``within`` changes of the first transaction that is committed at ``lsn`` or later.

    Positions are in the order of what is sent, transactions being sent as they were committed.
    """

    lsn: int
    within: int = 0

    def __str__(self) -> str:
        """Return it as PostgreSQL writes a place in its log, with the number."""
        return f"{lsn_text(self.lsn)}+{self.within}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Return what was written so, also by PostgreSQL; raises ValueError."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no position in a log of PostgreSQL")
        high, low, count = found.groups("0")
        return cls(int(high, 16) << 32 | int(low, 16), int(count))


class Mark(NamedTuple):
    """A position, and the transaction of which it is: when it was committed, and its number.

    Where it is of none, or nobody has noted it, these are 0.
    """

    at: Position
    committed_ns: int = 0
    xid: int = 0


def lsn_text(lsn: int) -> str:
    """Return a place in the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
