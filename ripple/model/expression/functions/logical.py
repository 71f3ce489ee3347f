"""Functions of dates and times as whole numbers, beyond the machine's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.program import NO_BYTES, NO_DATE, NO_TIME, NO_UUID
from ripple.model.expression.typed import Kind
from ripple.model.schema.bytes_form import BASE64, BytesForm
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import Bytes, Date, DateTime, Logical
from ripple.model.schema.uuid_form import UuidForm

_INT, _TEXT = ((Kind.INT,),), ((Kind.TEXT,),)


def _texts(kind: Logical) -> Callable[[Any], Any]:
    return lambda numbers: rule_of(kind).texts(pa.array(numbers))


def _of_texts(kind: Logical, code: int) -> Callable[[Any, bool], Any]:
    form = rule_of(kind).form(None, None)

    def read(texts: Any, strict: bool) -> Any:
        numbers, failed = form.parsed(texts)
        return (np.asarray(numbers.fill_null(0)), failed * np.uint8(code)) if strict else numbers

    return read


def _uuids(texts: Any, strict: bool) -> Any:
    return _stored(*UuidForm().parsed(texts), NO_UUID, strict)


def _decoded(texts: Any, encoding: str, strict: bool) -> Any:
    return _stored(*BytesForm(encoding).parsed(texts), NO_BYTES, strict)


def _digits(texts: Any, encoding: str, _strict: bool) -> Any:
    lengths = np.asarray(pc.binary_length(texts).fill_null(0)).astype(np.int64)
    return lengths * 3 // 2 if encoding == BASE64 else lengths


def _stored(texts: Any, failed: Any, code: int, strict: bool) -> Any:
    return (texts, failed * np.uint8(code)) if strict else texts


def _base64(digits: str) -> str:
    return rule_of(Bytes()).written(digits)


def _sizes(digits: Any) -> Any:
    return pc.divide(pc.binary_length(digits), pa.scalar(2, pa.int32())).cast(pa.int64())


LOGICAL = table(
    Function(
        "logical.date_of", _TEXT, Kind.INT, columns=_of_texts(Date(), NO_DATE), may_be_null=True
    ),
    Function(
        "logical.time_of", _TEXT, Kind.INT, columns=_of_texts(DateTime(), NO_TIME), may_be_null=True
    ),
    Function("logical.uuid_of", _TEXT, Kind.TEXT, columns=_uuids, may_be_null=True),
    Function("bin.of_text", _TEXT, Kind.TEXT, columns=_decoded, sizes=_digits, may_be_null=True),
    Function("logical.date", _INT, Kind.TEXT, columns=_texts(Date())),
    Function("logical.time", _INT, Kind.TEXT, columns=_texts(DateTime())),
    Function("bin.base64", _TEXT, Kind.TEXT, columns=rule_of(Bytes()).texts, plain=_base64),
    Function("bin.size", _TEXT, Kind.INT, columns=_sizes, plain=lambda text: len(text) // 2),
)
"""Dates, times, UUIDs and bytes of texts, texts of them, and the size of bytes."""
