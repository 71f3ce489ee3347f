"""Formats of values by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.errors import InputError
from ripple.kafka.values.arrow import ArrowValues
from ripple.kafka.values.csv import CsvValues
from ripple.kafka.values.json import JsonValues

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.record_shape import RecordShape
    from ripple.kafka.values.contract import Values

DEFAULT = "json"


def _msgpack(shape: RecordShape) -> Values:
    from ripple.kafka.values.msgpack import MsgpackValues  # noqa: PLC0415 - needs an extra

    return MsgpackValues(shape)


FORMATS: dict[str, Callable[[RecordShape], Values]] = {
    "json": JsonValues,
    "csv": CsvValues,
    "msgpack": _msgpack,
    "arrow": ArrowValues,
}


def values_of(name: str, shape: RecordShape) -> Values:
    """Return the format ``name`` for records of ``shape``. Raises InputError for one unknown."""
    if name not in FORMATS:
        raise InputError(f"there is no format {name!r}: there are {', '.join(FORMATS)}")
    return FORMATS[name](shape)
