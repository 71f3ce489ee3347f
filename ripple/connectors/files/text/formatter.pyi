from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.model.schema.exported import Made

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
    def format(self, batch: pa.RecordBatch | Made) -> bytes: ...
    def values(self, batch: pa.RecordBatch | Made, ends: npt.NDArray[np.int32]) -> bytes: ...
