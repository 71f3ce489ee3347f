from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

NULL_STATE: int
NO_NUMBER: int
TOO_LONG: int
NO_ROOM: int
NO_JSON: int
NO_DATE: int
NO_TIME: int
NO_UUID: int
NO_BYTES: int
OVERFLOWN: int
ZERO_DIVISION: int
FAILURES: dict[int, str]
OPCODES: dict[str, int]

class Program:
    input_kinds: tuple[str, ...]
    result_kind: str
    def __init__(
        self,
        input_kinds: tuple[str, ...],
        constants: tuple[tuple[str, float | int | bool | None], ...],
        code: tuple[tuple[str, int, int, int, int], ...],
        registers: int,
        result: int,
        result_kind: str,
    ) -> None: ...
    def run(
        self,
        inputs: Sequence[npt.NDArray[np.generic]],
        n: int,
        valid: Sequence[npt.NDArray[np.bool_] | None] | None = None,
    ) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.uint8] | None]: ...
    def run_slots(
        self,
        inputs: Sequence[npt.NDArray[np.generic]],
        slots: npt.NDArray[np.int64],
        valid: Sequence[npt.NDArray[np.bool_] | None] | None = None,
    ) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.uint8] | None]: ...
    def run_each(
        self, inputs: Sequence[npt.NDArray[np.generic]], slots: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.generic]: ...
