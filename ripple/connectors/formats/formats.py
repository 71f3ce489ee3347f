"""Formats of values by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.connectors.formats import json_schema
from ripple.connectors.formats.arrow import ArrowValues
from ripple.connectors.formats.csv import CsvValues
from ripple.connectors.formats.framed import check_subject
from ripple.connectors.formats.json import JsonValues
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.formats.contract import Values
    from ripple.connectors.formats.registry import Registry
    from ripple.connectors.record_shape import RecordShape

DEFAULT = "json"
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def _msgpack(shape: RecordShape) -> Values:
    from ripple.connectors.formats.msgpack import MsgpackValues  # noqa: PLC0415 - needs an extra

    return MsgpackValues(shape)


def _avro(shape: RecordShape, registry: Registry, subject: str) -> Values:
    from ripple.connectors.formats import avro, avro_writers  # noqa: PLC0415 - need an extra

    check_subject(registry, subject, avro_writers.FORM, shape, avro_writers.understood)
    return avro.AvroValues(shape, registry)


def _json_schema(shape: RecordShape, registry: Registry, subject: str) -> Values:
    check_subject(registry, subject, json_schema.FORM, shape, json_schema.understood)
    return json_schema.JsonSchemaValues(shape, registry)


def _protobuf(shape: RecordShape, options: Mapping[str, str]) -> Values:
    from ripple.connectors.formats.protobuf import ProtobufValues  # noqa: PLC0415 - needs an extra

    return ProtobufValues(shape, options)


FORMATS: dict[str, Callable[[RecordShape], Values]] = {
    "json": JsonValues,
    "csv": CsvValues,
    "msgpack": _msgpack,
    "arrow": ArrowValues,
}
# Formats with a schema's id before each value.
REGISTERED: dict[str, Callable[[RecordShape, Registry, str], Values]] = {
    "avro": _avro,
    "json-schema": _json_schema,
}


# Those that a place has to say more of.
DESCRIBED: dict[str, Callable[[RecordShape, Mapping[str, str]], Values]] = {"protobuf": _protobuf}


def values_of(
    name: str,
    shape: RecordShape,
    registry: Callable[[], Registry],
    subject: str = "",
    options: Mapping[str, str] = NO_OPTIONS,
) -> Values:
    """Return the format ``name`` for records of ``shape``.

    registry: asked for where the format needs one. subject: of their schemas in it. options: the
    place's other ones. Raises InputError for an unknown format, and for a subject or a message that
    does not fit; and as ``registry`` does.
    """
    if name in DESCRIBED:
        return DESCRIBED[name](shape, options)
    if name in REGISTERED:
        return REGISTERED[name](shape, registry(), subject)
    if name not in FORMATS:
        known = ", ".join([*FORMATS, *REGISTERED, *DESCRIBED])
        raise InputError(f"there is no format {name!r}: there are {known}")
    return FORMATS[name](shape)
