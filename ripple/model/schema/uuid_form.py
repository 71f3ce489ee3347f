"""UUIDs as sources write them, in text; ours have the same 36 characters in lower case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.core.frozen import frozen
from ripple.model.schema.text_columns import parts, text_column

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]


@frozen
class UuidForm:
    """The texts of a UUID: 8-4-4-4-12 hexadecimal digits of either case, and nothing around."""

    is_text = True
    is_other_unit = False
    clocks = None
    words = "is no UUID such as 123e4567-e89b-12d3-a456-426614174000"

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings in lower case, and where it is no UUID.

        It is null there, and where the column is.
        """
        from ripple.model.schema.byte_texts import uuids  # noqa: PLC0415 - few have UUIDs

        ends, texts, found = uuids(*parts(column))
        failed: Mask = found == 0
        if column.null_count:
            failed &= np.asarray(column.is_valid())
        return text_column(ends, texts, None if found.all() else found), failed
