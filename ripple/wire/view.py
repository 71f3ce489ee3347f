"""Frames and deltas as S-expressions, for people: the shapes that ``debug tap`` shows.

::

    seq=1 Handshake ((source_worker_id w0)(output_schemas ((vwap ...)))(protocol_version 1))
    seq=2 key=AAPL delta=(Patch ((Field_set (field_name price) (value 150.25))))
    seq=3 key=GOOG delta=(Set ((symbol GOOG)(vwap 2801.5)(total_volume 500)(trade_count 3)))
    seq=4 Changes ((output vwap)(partition 0)...)
      key=AAPL delta=(Patch ((Field_set (field_name vwap) (value 150.25))))
      key=GOOG delta=Remove
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import TYPE_CHECKING, Any

from ripple import sexp
from ripple.delta import convert, text
from ripple.delta.layout import layout_of
from ripple.delta.rows import Set
from ripple.encoding import arrow
from ripple.encoding.errors import EncodingError
from ripple.errors import DeltaError, SchemaError
from ripple.schema import notation
from ripple.schema.types import Schema
from ripple.wire.bin_prot import STRING, codec_for
from ripple.wire.edge_messages import Bundle, GrantedRows, Section
from ripple.wire.envelope import Frame
from ripple.wire.errors import RemoteProtocolError
from ripple.wire.messages import Changes, Delta, Handshake, Message, from_frame
from ripple.wire.records import delta_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.sexp import Sexp
    from ripple.wire.codec import Buffer, Codec


def spaced(value: Sexp) -> str:
    """Return the text in the spacing of ``debug tap``: fields touch, all else stands apart."""
    if isinstance(value, str):
        return sexp.dumps(value)
    touching = bool(value) and isinstance(value[0], list)
    return "(" + ("" if touching else " ").join(spaced(item) for item in value) + ")"


class View:
    """Prints the frames of one conversation; remembers the schemas that its Handshakes bring."""

    def __init__(self) -> None:
        self._codecs: dict[str, tuple[Schema, Codec[Any]]] = {}

    def lines(self, frame: Frame) -> Iterator[str]:
        """Yield the lines of a frame; raises :class:`RemoteProtocolError` if it has no meaning."""
        message = from_frame(frame)
        if isinstance(message, Handshake):
            self._learn(message)
        if isinstance(message, Delta):
            yield f"seq={message.sequence_no} {self.delta(message)}"
        else:
            yield f"seq={frame.sequence} {type(message).__name__} {spaced(_fields(message))}"
        if isinstance(message, Changes | Bundle):
            for line in _changes(message.body):
                yield f"  {line}"

    def delta(self, message: Delta) -> str:
        """Return ``key=... delta=...``; a value whose schema is not known stays hexadecimal."""
        schema, codec = self._codecs.get(message.source_output, (None, None))
        if codec is None:
            return f"key={_key(message.key)} delta={_hex(message.delta_bytes)}"
        delta = codec.loads(message.delta_bytes)
        # The values inside a patch are S-expressions already; those of a Set have types.
        shown = text.to_sexp(delta, schema if isinstance(delta, Set) else None)
        return f"key={_key(message.key)} delta={spaced(shown)}"

    def _learn(self, handshake: Handshake) -> None:
        schemas = {schema.name: schema for schema in handshake.outputs.values()}
        for output, schema in handshake.outputs.items():
            try:
                self._codecs[output] = schema, delta_of(codec_for(schema, refs=schemas))
            except SchemaError as error:
                raise RemoteProtocolError(f"the schema of {output}: {error}") from None


def _changes(body: Buffer) -> list[str]:
    """Return a line for each row; columns that are no deltas are shown as what they are."""
    try:
        batch = arrow.loads(body)
    except EncodingError as error:
        raise RemoteProtocolError(str(error)) from error
    try:
        return [
            f"key={spaced(_value(key))} delta={spaced(text.to_sexp(delta))}"
            for key, delta in convert.to_rows(layout_of(batch.schema), batch)
        ]
    except (DeltaError, SchemaError) as error:
        rows: list[Sexp] = [
            [[name, _value(held)] for name, held in row.items()] for row in batch.to_pylist()
        ]
        return [f"not deltas: {error}", *map(spaced, rows)]


def _fields(message: Message | Section | GrantedRows) -> Sexp:
    assert dataclasses.is_dataclass(message)
    return [
        [field.name, _value(getattr(message, field.name))]
        for field in dataclasses.fields(message)
        if field.name != "body"
    ]


def _value(value: Any) -> Sexp:
    match value:
        case Schema():
            return notation.to_sexp(value)
        case Enum():
            return value.name
        case bytes() | memoryview():
            return _hex(value)
        case tuple() | list():
            return [_value(item) for item in value]
        case Section() | GrantedRows():
            return _fields(value)
        case dict():
            return [[name, _value(held)] for name, held in value.items()]
        case None | bool() | int() | float() | str():
            return text.value_to_sexp(value)
        case _:  # what Arrow makes of a column, such as a time
            return str(value)


def _key(key: bytes) -> str:
    try:
        return sexp.dumps(STRING.loads(key))
    except RemoteProtocolError:
        return _hex(key)


def _hex(data: Buffer) -> str:
    return "0x" + data.hex()
