"""UUIDs: texts of 36 characters, in the order of the 128 bits."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.forms import need_no_form
from ripple.model.schema.logical.objects import ObjectArrays
from ripple.model.schema.text_columns import text_column, valid_in
from ripple.model.schema.uuid_form import UuidForm

if TYPE_CHECKING:
    from ripple.model.schema.document import Json

_BYTES = 16


class UuidRule(ObjectArrays):
    """The rule of UUIDs."""

    word = "a UUID"
    arrow = pa.string()
    avro: ClassVar[dict[str, Json]] = {"type": "string", "logicalType": "uuid"}
    json: ClassVar[dict[str, Json]] = {"type": "string", "format": "uuid"}
    bounds = (0, 0)  # of numbers; there are none

    def form(self, form: str | None, zone: str | None) -> UuidForm:
        need_no_form("a UUID", form, zone)
        return UuidForm()

    def takes(self, arrow: pa.DataType) -> bool:
        is_16 = kinds.is_fixed_size_binary(arrow) and arrow.byte_width == _BYTES
        return bool(is_16 or arrow == pa.uuid())

    def stored(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema.byte_texts import uuids_of  # noqa: PLC0415 - few have UUIDs

        plain = column.storage if isinstance(column, pa.ExtensionArray) else column
        rows = np.frombuffer(plain.buffers()[1] or b"", np.uint8).reshape(-1, _BYTES)
        rows = rows[plain.offset : plain.offset + len(plain)]
        valid = valid_in(plain)
        return text_column(*uuids_of(valid, rows), valid)

    def shown(self, column: pa.Array) -> pa.Array:
        return column

    def number(self, value: Any) -> str | None:
        return str(value) if isinstance(value, uuid.UUID) else None

    def value(self, number: str) -> uuid.UUID:
        return uuid.UUID(number)

    def text(self, value: Any) -> str | None:
        if isinstance(value, bytes) and len(value) == _BYTES:
            return str(uuid.UUID(bytes=value))
        return self.number(value)

    def written(self, number: str) -> str:
        return number

    def texts(self, column: pa.Array) -> pa.Array:
        return column
