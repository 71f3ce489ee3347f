import numpy as np
import numpy.typing as npt

from ripple.engine.kernels.stored import Waiting

Ints = npt.NDArray[np.int64]

class Matches:
    def __init__(
        self,
        left: Waiting,
        right: Waiting,
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
    ) -> tuple[Ints, Ints, Ints, Ints, int] | None: ...
    def needed(self, oldest_ns: int) -> Ints: ...
    def drop(self, oldest_ns: int, capacity: int) -> npt.NDArray[np.bool_]: ...
    @property
    def nbytes(self) -> int: ...
