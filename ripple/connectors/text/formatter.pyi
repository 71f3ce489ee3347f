from typing import Literal

import pyarrow as pa

class RowFormatter:
    def __init__(
        self,
        columns: list[
            tuple[
                int,
                bytes,
                Literal["string", "integer", "float", "bool", "raw", "op"],
                int | None,
            ]
        ],
        suffix: bytes,
        *,
        json: bool = False,
        left_out: int = -1,
    ) -> None: ...
    def format(self, batch: pa.RecordBatch) -> bytes: ...
