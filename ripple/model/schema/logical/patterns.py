"""Dates and times of a source with a pattern: those that are no texts become marked ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ripple.model.schema.logical.dates import DateRule
from ripple.model.schema.logical.times import DateTimeRule
from ripple.model.schema.typed_texts import MARK, marked


class PatternTimeRule(DateTimeRule):
    """The rule of times."""

    _plain = DateTimeRule()

    def text(self, value: Any) -> str | None:
        return _marked(self._plain.text(value))

    def written(self, number: int) -> str:
        return MARK + self._plain.written(number)

    def texts(self, column: pa.Array) -> pa.Array:
        return marked(self._plain.texts(column))


class PatternDateRule(DateRule):
    """The rule of dates."""

    _plain = DateRule()

    def text(self, value: Any) -> str | None:
        return _marked(self._plain.text(value))

    def written(self, number: int) -> str:
        return MARK + self._plain.written(number)

    def texts(self, column: pa.Array) -> pa.Array:
        return marked(self._plain.texts(column))


def _marked(text: str | None) -> str | None:
    return None if text is None else MARK + text
