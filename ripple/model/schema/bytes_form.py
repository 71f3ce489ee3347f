"""Bytes as sources of text write them; ours are hexadecimal digits in lower case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.text_columns import parts, text_column

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]

BytesText: TypeAlias = Literal["base64", "hex"]
BASE64: BytesText = "base64"
HEX: BytesText = "hex"
FORMS: tuple[str, ...] = get_args(BytesText)
_WORDS: dict[str, str] = {
    BASE64: "is no base64 such as SGVsbG8=, with its padding",
    HEX: "is no bytes of two hexadecimal digits each, such as 48656c6c6f",
}


@frozen
class BytesForm:
    """The texts of bytes. form: one of FORMS. Raises SchemaError for another one."""

    form: str = BASE64

    is_text = True
    is_other_unit = False
    clocks = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise SchemaError(f"format is {shown(self.form)}: that of bytes is 'base64' or 'hex'")

    @property
    def words(self) -> str:
        """The reason for a value of another form, after "the field"."""
        return _WORDS[self.form]

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings as digits, and where it is none of the form.

        It is null there, and where the column is.
        """
        from ripple.model.schema import byte_texts  # noqa: PLC0415 - few have bytes

        read = byte_texts.hexes if self.form == HEX else byte_texts.of_base64
        ends, texts, found = read(*parts(column))
        failed: Mask = found == 0
        if column.null_count:
            failed &= np.asarray(column.is_valid())
        return text_column(ends, texts, None if found.all() else found), failed
