"""Functions of dates, as days since 1970: what the machine's operations do not do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.typed import Kind
from ripple.model.schema.held import rule_of
from ripple.model.schema.types import Date


def _to_text(days: Any) -> Any:
    return rule_of(Date()).shown(pa.array(days)).cast(pa.string())


DATES = table(Function("date.to_text", ((Kind.INT,),), Kind.TEXT, columns=_to_text))
