import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.engine.kernels.stored import Waiting
from ripple.model.schema.exported import Made

Ints = npt.NDArray[np.int64]

class Matches:
    is_read: bool
    def __init__(
        self,
        left: Waiting,
        right: Waiting,
        schema: pa.Schema,
        mine: list[str],
        theirs: list[str],
        slot: str,
        *,
        strategy: str,
        is_strict: bool,
        is_inner: bool,
        tolerance_ns: int | None,
        deleted: str | None,
    ) -> None: ...
    def take(
        self, left_ns: int, right_ns: int, capacity: int
    ) -> tuple[Made | None, Ints, Ints, Ints, int] | None: ...
    def needed(self, oldest_ns: int) -> Ints: ...
    def drop(self, oldest_ns: int, capacity: int) -> npt.NDArray[np.bool_]: ...
    @property
    def nbytes(self) -> int: ...
