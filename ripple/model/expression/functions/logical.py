"""Functions of dates and times as whole numbers, beyond the machine's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.typed import Kind
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import Date, DateTime, Logical

_INT = ((Kind.INT,),)


def _texts(kind: Logical) -> Callable[[Any], Any]:
    return lambda numbers: rule_of(kind).texts(pa.array(numbers))


LOGICAL = table(
    Function("logical.date", _INT, Kind.TEXT, columns=_texts(Date())),
    Function("logical.time", _INT, Kind.TEXT, columns=_texts(DateTime())),
)
"""The texts of dates and of times."""
