"""Positions of changes in the log of a server: a transaction, and a number of its changes."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"([0-9A-F]+)/([0-9A-F]+)(?:\+([0-9]+))?")


class Position(NamedTuple):
    """After ``within`` changes of the first transaction that is committed at ``lsn`` or later.

    Positions are in sending order, as transactions are sent in the order of their commits.
    """

    lsn: int
    within: int = 0

    def __str__(self) -> str:
        """Return it as PostgreSQL writes a place in its log, with the number."""
        return f"{lsn_text(self.lsn)}+{self.within}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse the written form, PostgreSQL's too; raises ValueError."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no position in a log of PostgreSQL")
        high, low, count = found.groups("0")
        return cls(int(high, 16) << 32 | int(low, 16), int(count))


class Mark(NamedTuple):
    """A position, with the commit time and the number of its transaction.

    Without a transaction, or if it was not noted, these are 0.
    """

    at: Position
    committed_ns: int = 0
    xid: int = 0


def lsn_text(lsn: int) -> str:
    """Return a place in the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
