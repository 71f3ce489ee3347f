"""Bytes: texts of two digits a byte, in the order of the bytes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.model.schema.bytes_form import BASE64, HEX, BytesForm
from ripple.model.schema.logical.objects import ObjectArrays
from ripple.model.schema.text_columns import parts, text_column

if TYPE_CHECKING:
    from ripple.model.schema.document import Json


class BytesRule(ObjectArrays):
    """The rule of bytes. form: of the texts of their source."""

    word = "bytes"
    arrow = pa.binary()
    avro: ClassVar[dict[str, Json]] = {"type": "bytes"}
    json: ClassVar[dict[str, Json]] = {"type": "string", "contentEncoding": "base64"}
    bounds = (0, 0)  # of numbers; there are none

    def __init__(self, form: str = BASE64) -> None:
        self._form = form

    def form(self, form: str | None, zone: str | None) -> BytesForm:
        if zone is not None:
            raise SchemaError(f"zone is {shown(zone)}, and bytes have none: leave it out")
        return BytesForm(self._form if form is None else form)

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(
            kinds.is_binary(arrow)
            or kinds.is_large_binary(arrow)
            or kinds.is_binary_view(arrow)
            or kinds.is_fixed_size_binary(arrow)
        )

    def stored(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema.byte_texts import hex_of  # noqa: PLC0415 - few have bytes

        valid, ends, data = parts(column.cast(pa.binary()))
        return text_column(*hex_of(valid, ends, data), valid)

    def shown(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema.byte_texts import of_hex  # noqa: PLC0415 - few have bytes

        valid, ends, data = parts(column)
        return text_column(*of_hex(valid, ends, data), valid, pa.binary())

    def number(self, value: Any) -> str | None:
        return value.hex() if isinstance(value, (bytes, bytearray)) else None

    def value(self, number: str) -> bytes:
        return bytes.fromhex(number)

    def text(self, value: Any) -> str | None:
        number = self.number(value)
        return None if number is None else self.written(number)

    def written(self, number: str) -> str:
        if self._form == HEX:
            return number
        return base64.b64encode(bytes.fromhex(number)).decode()

    def texts(self, column: pa.Array) -> pa.Array:
        return column if self._form == HEX else base64_texts(self.shown(column))


def base64_texts(column: pa.Array) -> pa.Array:
    """Return a binary column as texts."""
    from ripple.model.schema.byte_texts import base64_of  # noqa: PLC0415 - few have bytes

    valid, ends, data = parts(column)
    return text_column(*base64_of(valid, ends, data), valid)
