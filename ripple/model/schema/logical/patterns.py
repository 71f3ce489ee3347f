"""Dates and times of a source with a pattern: values other than texts become marked ones."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from ripple.model.schema.logical.dates import DateRule
from ripple.model.schema.logical.times import DateTimeRule
from ripple.model.schema.typed_texts import MARK, marked


class _MarkedTexts:
    """Marked texts of a rule. They come from a rule apart, since its methods call each other."""

    _plain: ClassVar[DateRule | DateTimeRule]

    def text(self, value: Any) -> str | None:
        text = self._plain.text(value)
        return None if text is None else MARK + text

    def written(self, number: int) -> str:
        return MARK + self._plain.written(number)

    def texts(self, column: pa.Array) -> pa.Array:
        return marked(self._plain.texts(column))


class PatternTimeRule(_MarkedTexts, DateTimeRule):
    """The rule of times."""

    _plain = DateTimeRule()


class PatternDateRule(_MarkedTexts, DateRule):
    """The rule of dates."""

    _plain = DateRule()
