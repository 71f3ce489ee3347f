from typing import Literal

import pyarrow as pa

class RowFormatter:
    def __init__(
        self,
        columns: list[
            tuple[bytes, Literal["string", "integer", "float", "bool", "raw"], int | None]
        ],
        suffix: bytes,
        *,
        json: bool = False,
    ) -> None: ...
    def format(self, rows: int, arrays: list[pa.Array]) -> bytes: ...
