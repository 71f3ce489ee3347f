from collections.abc import Callable, Sequence
from typing import Any

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
