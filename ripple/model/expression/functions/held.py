"""Functions of dates and times as whole numbers, beyond the machine's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.typed import Kind
from ripple.model.schema.held import rule_of
from ripple.model.schema.types import Date, DateTime, Held

_INT = ((Kind.INT,),)


def _texts(kind: Held) -> Callable[[Any], Any]:
    return lambda numbers: rule_of(kind).texts(pa.array(numbers))


HELD = table(
    Function("held.date", _INT, Kind.TEXT, columns=_texts(Date())),
    Function("held.time", _INT, Kind.TEXT, columns=_texts(DateTime())),
)
"""The texts of dates and of times."""
