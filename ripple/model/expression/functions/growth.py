"""The bytes of texts that functions make longer, known before the texts are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.functions.pattern import groups_in, replacement
from ripple.model.expression.program import FAILURES, TOO_LONG

if TYPE_CHECKING:
    import numpy.typing as npt

    Sizes: TypeAlias = npt.NDArray[np.int64]

TEXT_BYTES_MAX = 1 << 20  # UTF-8 of a text that a function makes longer; more fails the row
COLUMN_BYTES_MAX = 1 << 30  # of a column of such texts: more is made of fewer rows at a time


def within_limit(text: str) -> str:
    """Return a text that is not too long; raises ValueError."""
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise ValueError(FAILURES[TOO_LONG])
    return text


def too_long(sizes: Sizes) -> npt.NDArray[np.bool_] | None:
    """Return which texts are too long, None for none of them.

    Raises OverflowError if the others are too much for a column: take fewer rows.
    """
    failed: npt.NDArray[np.bool_] = sizes > TEXT_BYTES_MAX
    if int(sizes.sum(where=~failed)) > COLUMN_BYTES_MAX:
        raise OverflowError("the texts of a column have more than 1 GiB")
    return failed if failed.any() else None


def bytes_of(array: Any) -> Sizes:
    """Return the bytes of each text, 0 for null."""
    lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
    sizes: Sizes = lengths.astype(np.int64)
    return sizes


def joined(first: Any, second: Any) -> Sizes:
    """Return the bytes of each text with another behind it."""
    return bytes_of(first) + bytes_of(second)


def padded(array: Any, length: int, fill: str) -> Sizes:
    """Return the bytes of each text with as many characters at least."""
    missing = length - pc.fill_null(pc.utf8_length(array), length).to_numpy(zero_copy_only=False)
    sizes: Sizes = bytes_of(array) + np.maximum(missing, 0) * np.int64(len(fill.encode()))
    return sizes


def replaced(columns: Callable[..., Any], *, once: bool) -> Callable[..., Sizes]:
    """Return the function for the sizes of what ``columns`` makes, a replacement of matches.

    No match is empty. Where the texts may become too long the replaced parts are measured, by
    replacements that at most double a text.
    """

    def sizes(array: Any, pattern: str, value: str, literal: bool) -> Sizes:
        own = bytes_of(array)
        constant, groups = (len(value.encode()), []) if literal else _parts_of(value)
        matches_most = np.minimum(own, 1) if once else own
        most = own * (1 + len(groups)) + matches_most * constant
        doubtful = np.flatnonzero(most > TEXT_BYTES_MAX)
        if len(doubtful) == 0 and int(most.sum()) > COLUMN_BYTES_MAX:
            doubtful = np.arange(len(most))
        if len(doubtful):
            some = array.take(pa.array(doubtful))

            def with_each(by: str) -> Sizes:
                return bytes_of(columns(some, pattern, by, literal))

            removed = with_each("")
            if literal:
                matches = (own[doubtful] - removed) // len(pattern.encode())
            else:
                matches = with_each("$0+") - own[doubtful]
            most[doubtful] = removed + matches * constant
            for group in groups:
                most[doubtful] += with_each(f"${group}") - removed
        return most

    return sizes


def _parts_of(value: str) -> tuple[int, list[int]]:
    """Return the bytes that a replacement puts for each match, and its groups."""
    by = replacement(value)
    constant = re.sub(r"\\(.)", lambda found: "" if found[1].isdecimal() else found[1], by)
    return len(constant.encode()), groups_in(by)
