"""The results of rows that an expression cannot compute."""

from __future__ import annotations

from dataclasses import dataclass

from ripple.model.expression.program import (
    FAILURES,
    NO_BYTES,
    NO_DATE,
    NO_JSON,
    NO_NUMBER,
    NO_ROOM,
    NO_TIME,
    NO_UUID,
    TOO_LONG,
)


@dataclass(frozen=True)
class Failed:
    """The result of an expression for a row that it cannot compute."""

    reason: str


OVERFLOW = Failed("integer overflow")
DIVISION = Failed("integer division by zero")
CONVERSION = Failed("a float that has no 64-bit integer")
# A later one hides an earlier one.
NOT_A_DATE, NOT_A_TIME = Failed(FAILURES[NO_DATE]), Failed(FAILURES[NO_TIME])
_OF_TEXTS = tuple(Failed(FAILURES[code]) for code in (NO_NUMBER, TOO_LONG, NO_ROOM, NO_JSON))
NOT_A_UUID, NOT_ENCODED = Failed(FAILURES[NO_UUID]), Failed(FAILURES[NO_BYTES])
WORST = (
    OVERFLOW,
    DIVISION,
    CONVERSION,
    *_OF_TEXTS,
    NOT_A_DATE,
    NOT_A_TIME,
    NOT_A_UUID,
    NOT_ENCODED,
)
