from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

_Slots = npt.NDArray[np.int64]

class Records:
    slots: int
    stride: int
    def __init__(self, parts: Iterable[Part]) -> None: ...
    @property
    def nbytes(self) -> int: ...

class Part:
    @property
    def slots(self) -> int: ...
    def resize(self, slots: int) -> None: ...
    def clear(self, slots: _Slots) -> None: ...

class Read:
    is_float: bool
    is_nullable: bool
    def column(self, slots: _Slots) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]: ...
