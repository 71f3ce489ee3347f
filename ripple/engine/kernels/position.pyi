from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]

class PositionCall:
    def __init__(
        self,
        method: str,
        *,
        has_fee: bool,
        has_busted: bool,
        factor: int,
        fee_factor: int,
        limits: tuple[int, int],
        lots_max: int,
        reads_wide: bool,
        has_split: bool = False,
    ) -> None: ...
    @property
    def is_small(self) -> bool: ...
    def run(
        self,
        states: list[tuple[Any, ...]],
        slots: Ints,
        begins: Mask,
        initial: tuple[Any, ...],
        given: Ints,
        fees: Ints | None,
        busted: Mask | None,
        out: Ints,
        kept: Mask,
    ) -> dict[int, ValueError]: ...
    def __call__(
        self, before: tuple[Any, ...], row: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]: ...
