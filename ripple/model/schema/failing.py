"""Checks over a column of values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.model.schema.bytes_form import FORMS
from ripple.model.schema.exported import Lent
from ripple.model.schema.inside import floats_inside, integers_inside, texts_inside
from ripple.model.schema.json_form import JSON
from ripple.model.schema.types import List, bare_type

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.model.schema.checks import Checks
    from ripple.model.schema.types import Field

    Mask = npt.NDArray[np.bool_]


def judges_of(checks: Mapping[str, Checks], fields: Iterable[Field]) -> dict[str, Judge]:
    """Return the judges of fields by name; a list has at most a form, which all of them pass."""
    lists = {one.name for one in fields if isinstance(bare_type(one.type), List)}
    return {name: Judge(of) for name, of in checks.items() if name not in lists}


class Judge:
    """Finds the values of one field that fail its checks, which are fitted to it."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        # Of bytes a form alone, which all texts pass.
        self._measured = checks.is_measured or getattr(checks, "format", None) in (JSON, *FORMS)
        self._floats = checks.is_of_floats
        self._low, self._high = checks.interval
        if checks.finite:
            largest = sys.float_info.max
            self._low, self._high = max(self._low, -largest), min(self._high, largest)
        self._lengths = checks.lengths

    def failing(self, column: pa.Array) -> list[tuple[str, Mask]]:
        """Return why values fail, and bool[n] of failing ones, in the order of the CSV parser.

        column: int64, float64 or string, as the field is; nulls pass. Reasons complete "the field
        is": "empty", "not finite". A value that fails twice is in both masks.
        """
        if self.all_pass(Lent.of(column)):
            return []
        present = column.is_valid().to_numpy(zero_copy_only=False)
        found = self._texts(column) if self._measured else self._numbers(column)
        failing = ((reason, present & ~passed) for reason, passed in found)
        return [(reason, failed) for reason, failed in failing if failed.any()]

    @property
    def bounds(self) -> tuple[str, float, float]:
        """The kind of values (KINDS of ripple.model.schema.exported), their least and greatest.

        Of text, numbers of characters.
        """
        if self._measured:
            return ("s", *self._lengths)
        if self._floats:
            return "d", self._low, self._high
        return "q", int(self._low), int(self._high)

    def all_pass(self, column: Lent) -> bool:
        """Tell whether no value fails; a null may be taken for a failing one."""
        kind, low, high = self.bounds
        if kind == "d":
            return floats_inside(column, low, high)
        inside = texts_inside if kind == "s" else integers_inside
        return inside(column, int(low), int(high))

    def _numbers(self, column: pa.Array) -> Iterator[tuple[str, Mask]]:
        numbers = _buffer(column, 1, np.float64 if self._floats else np.int64)[: len(column)]
        if self._checks.finite:
            yield "not finite", np.isfinite(numbers)
        if self._checks.is_bounded:
            low, high = self._checks.interval
            yield f"not {self._checks.range_words}", (numbers >= low) & (numbers <= high)

    def _texts(self, column: pa.Array) -> Iterator[tuple[str, Mask]]:
        shortest, longest = self._lengths
        lengths = _characters(column)
        if shortest:
            yield "empty", lengths > 0
        yield f"not {self._checks.length_words}", (lengths >= shortest) & (lengths <= longest)


def _characters(column: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers of characters of texts."""
    ends = _buffer(column, 1, np.int32)[: len(column) + 1]
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    before = np.concatenate(([0], np.cumsum((text & 0xC0) != 0x80)))  # a character's first byte
    return np.diff(before[ends - ends[0]])


def _buffer(column: pa.Array, number: int, kind: Any) -> npt.NDArray[Any]:
    return np.frombuffer(column.buffers()[number], kind)[column.offset :]
