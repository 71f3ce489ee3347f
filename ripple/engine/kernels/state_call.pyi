from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Kind = tuple[type | None, bool]

class Filled:
    def __init__(self, one: Any, names: tuple[str, ...]) -> None: ...

class StateCall:
    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        state: Filled,
        row: Filled | Callable[[Sequence[Any]], Any],
        state_kinds: tuple[Kind, ...],
        row_names: tuple[str, ...],
        row_kinds: tuple[Kind, ...],
        fit_state: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        fit_row: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        result_of: Callable[[Any], Sequence[Any]],
    ) -> None: ...
    def __call__(
        self, before: tuple[Any, ...], row: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]: ...

class GivenRows(Sequence[tuple[Any, ...]]):
    def __init__(self, columns: list[list[Any]]) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: Any) -> Any: ...

def called(
    call: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, Any]],
    states: list[tuple[Any, ...]],
    slots: npt.NDArray[np.int64],
    begins: npt.NDArray[np.uint8],
    initial: tuple[Any, ...],
    given: Iterable[tuple[Any, ...] | None],
    kept: npt.NDArray[np.uint8],
) -> tuple[list[tuple[Any, ...]], dict[int, BaseException]]: ...
def column_of(made: Sequence[tuple[Any, ...]], at: int, kind: type) -> tuple[Any, Any] | None: ...
