"""Rows of changes as record values, by format: null for a removed row."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.files.text.sink import TextFormat, TextLines, maps_of
from ripple.connectors.formats import avro_decimals
from ripple.connectors.formats.framed import head_of
from ripple.connectors.formats.registry import RegistryError
from ripple.connectors.kafka.row_collections import map_head, values_of
from ripple.connectors.kafka.row_writing import KINDS, encode
from ripple.connectors.record_shape import value_type
from ripple.core.errors import OutputError, SchemaError
from ripple.core.row_ops import OP_REMOVE, place_of_op
from ripple.model.schema.avro import to_avro
from ripple.model.schema.json_schema import to_json_schema
from ripple.model.schema.logical.columns import stored
from ripple.model.schema.logical.maps import kind_word
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.map_columns import keys_in, members_of, values_in
from ripple.model.schema.types import (
    DECIMALS,
    Bytes,
    Dict,
    Field,
    Float,
    List,
    Logical,
    Option,
    Schema,
    bare_type,
)

if TYPE_CHECKING:
    from ripple.connectors.formats.registry import Registry
    from ripple.model.pipeline.nodes import Output
    from ripple.model.schema.types import FieldType

ValueForm = Literal["json", "csv", "msgpack", "avro", "json-schema"]
FORMS: tuple[ValueForm, ...] = ("json", "csv", "msgpack", "avro", "json-schema")
REGISTERED = ("avro", "json-schema")  # those that need a registry


class RowValues(Protocol):
    """One format."""

    def values(self, changes: pa.RecordBatch) -> pa.Array:
        """Return each row as binary, null where it is removed. Raises OutputError."""
        ...


def row_values(
    form: ValueForm, output: Output, name: str, registry: Registry | None = None, subject: str = ""
) -> RowValues:
    """Return the encoder of ``output``'s rows. name: of the target, for errors.

    registry, subject: of REGISTERED formats, where a missing schema is registered. Raises
    OutputError for rows that the format cannot hold, and if the registry rejects the schema.
    """
    if form in ("json", "csv"):
        return TextLines(_lines_of(form, output), name, b"")
    if form == "msgpack":
        return FlatValues(output.fields, name, avro=False)
    assert registry is not None
    if form == "avro":
        FlatValues(output.fields, name, avro=True)  # what it refuses must not be registered
    try:
        number = registry.register(subject, *_schema(form, output))
    except (RegistryError, SchemaError) as error:
        raise OutputError(
            f"cannot write {name}: the rows of {output.name!r} cannot be registered as "
            f"{subject!r}: {error}"
        ) from error
    if form == "avro":
        return FlatValues(output.fields, name, avro=True, head=head_of(number))
    return _Headed(TextLines(_lines_of("json", output), name, b""), head_of(number))


def _lines_of(form: Literal["json", "csv"], output: Output) -> TextFormat:
    return TextFormat(form, removes="skip", objects=maps_of(output))


def _schema(form: ValueForm, output: Output) -> tuple[str, str]:
    """Return the schema for a registry: its kind, and its text."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", output.name)
    if form == "avro":
        return "AVRO", json.dumps(to_avro(Schema(name, output.fields)))
    # A number that is none, or has no end, is null in JSON.
    fields = (
        Field(one.name, Option(one.type), one.optional, one.doc)
        if isinstance(one.type, Float) and not one.optional
        else one
        for one in output.fields
    )
    return "JSON", json.dumps(to_json_schema(Schema(name, tuple(fields))))


class _Headed:
    """Values with something in front of each."""

    def __init__(self, rows: RowValues, head: bytes) -> None:
        self._rows = rows
        self._head = pa.scalar(head, pa.binary())

    def values(self, changes: pa.RecordBatch) -> pa.Array:
        """Return each row as binary; see RowValues."""
        values = self._rows.values(changes)
        return pc.binary_join_element_wise(self._head, values, pa.scalar(b"", pa.binary()))


class FlatValues:
    """Rows as Avro records or maps of MessagePack, in columns; lists and maps are such there.

    An Avro field is a union with null, null first, where its column may be null.
    """

    def __init__(
        self, fields: tuple[Field, ...], name: str, *, avro: bool, head: bytes = b""
    ) -> None:
        """Raise OutputError for a field that is something else."""
        self._name = name
        self._is_avro = avro
        self._fields: list[tuple[Field, bool]] = []
        self._raw: list[int] = []
        for at, field in enumerate(fields):
            try:
                _, is_optional = value_type(field)
            except SchemaError as error:
                raise OutputError(
                    f"cannot write {name}: field {field.name!r} is a "
                    f"{type(field.type).__name__}, which is written as format=json alone"
                ) from error
            self._fields.append((field, is_optional))
            if isinstance(bare_type(field.type), (List, Dict)):
                self._raw.append(at)
        if avro:
            self._head, self._labels = head, [b""] * len(fields)
        else:
            self._head = map_head(len(fields))
            self._labels = [_text(field.name.encode()) for field in fields]

    def values(self, changes: pa.RecordBatch) -> pa.Array:
        """Return each row as binary; see RowValues."""
        at = place_of_op(changes.schema)
        there = np.ones(changes.num_rows, np.uint8)
        if at >= 0:
            there = (changes.column(at).to_numpy() != OP_REMOVE).astype(np.uint8)
        for field, is_optional in self._fields:
            column = changes.column(field.name)
            if self._is_avro and not is_optional and column.null_count:
                self._check_there(field.name, column, there)
        unions = [is_optional for _, is_optional in self._fields]
        try:
            columns = [
                self._written(changes.column(field.name), bare_type(field.type))
                for field, _ in self._fields
            ]
            return encode(
                columns,
                self._labels,
                unions,
                self._head,
                there,
                avro=self._is_avro,
                raw=self._raw,
            )
        except OverflowError as error:
            raise OutputError(f"cannot write {self._name}: {error} at once") from error

    def _written(self, column: pa.Array, of: FieldType) -> pa.Array:
        """Return a column of shown values as ``encode`` takes it; lists and maps are written."""
        if isinstance(of, List):
            null = np.asarray(column.is_null())
            lengths = np.where(null, 0, np.diff(np.asarray(column.offsets).astype(np.int64)))
            items = self._written(column.flatten(), bare_type(of.of))
            return values_of([items], lengths, column, avro=self._is_avro)
        if isinstance(of, Dict):
            members = members_of(column)
            values = values_in(members.values, kind_word(of))
            pairs = [keys_in(members), self._written(values, of.of)]
            return values_of(pairs, members.counts, column, avro=self._is_avro)
        if isinstance(of, Logical) and not isinstance(of, Bytes):
            column = stored(column, of)
            if not self._is_avro:
                column = rule_of(of).texts(column)
            elif isinstance(of, DECIMALS):
                column = avro_decimals.written(column, of)
        kind = self._kind(of)
        return column if column.type == kind else column.cast(kind)

    def _kind(self, of: FieldType) -> pa.DataType:
        if isinstance(of, Bytes):
            return pa.binary()
        if isinstance(of, DECIMALS) or (isinstance(of, Logical) and not self._is_avro):
            return pa.string()  # bytes in Avro; MessagePack has no such type
        return value_type(Field("value", of))[0]

    def _check_there(self, name: str, column: pa.Array, there: np.ndarray) -> None:
        """Raise OutputError where a row that is written has no value; in others it may."""
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        if (is_null & there.astype(bool)).any():
            raise OutputError(
                f"cannot write {self._name}: {name} has no value in a row, and its schema says "
                "that it always has: use format=json"
            )


assert set(KINDS) == {pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.binary()}


def _text(data: bytes) -> bytes:
    if len(data) < 32:
        return bytes([0xA0 | len(data)]) + data
    return b"\xda" + len(data).to_bytes(2, "big") + data
