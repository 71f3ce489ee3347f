from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ripple.engine.kernels.stored import Beside, Waiting
from ripple.model.keys.index import KeyIndex
from ripple.model.schema.exported import Made

Ints = npt.NDArray[np.int64]

class Taken:
    count: int
    unmatched: int
    def batch(self, first: int, end: int) -> Made: ...
    def times(self, first: int, end: int) -> Ints: ...
    def places(self, first: int, end: int) -> Ints: ...
    def numbers(self, first: int, end: int) -> Ints: ...

class Matches:
    def __init__(
        self,
        left: Waiting,
        right: Waiting,
        slot: str,
        keys: KeyIndex,
        beside: Beside,
        *,
        latenesses_ns: Sequence[int],
        strategy: str,
        is_strict: bool,
        is_inner: bool,
        tolerance_ns: int | None,
        deleted: str | None,
    ) -> None: ...
    def bounds(self, left_ns: int, right_ns: int) -> tuple[int, int]: ...
    def settle(self, left_ns: int, right_ns: int) -> Taken | None: ...
    def take(self, left_ns: int, right_ns: int) -> Taken | None: ...
    def needed(self, oldest_ns: int) -> Ints: ...
    def drop(self, oldest_ns: int) -> None: ...
    def used(self) -> npt.NDArray[np.bool_]: ...
    @property
    def nbytes(self) -> int: ...
