from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.engine.graph.column import Column
from ripple.engine.graph.node import Node
from ripple.model.schema.exported import Made

class View(Node):
    column: Column
    schema: pa.Schema
    digest: int
    final_digest: int
    def __init__(
        self,
        column: Column,
        fields: tuple[Sequence[pa.Field], Sequence[pa.Field]],
        *,
        retractions: bool,
        in_order: bool,
    ) -> None: ...
    removed: int
    def take(self) -> Made: ...
    def take_retracted(self) -> pa.RecordBatch: ...
    def finalize(self, slots: npt.NDArray[np.int64]) -> None: ...
    def live_digest(self) -> int: ...
    def table(self) -> pa.Table: ...
    def rows(self, slots: npt.NDArray[np.int64]) -> pa.RecordBatch: ...
