from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Values = tuple[Any, ...]

class Entry:
    @property
    def number(self) -> int: ...
    @property
    def slot(self) -> int: ...
    @property
    def of(self) -> Any: ...
    @property
    def result(self) -> Values | str | None: ...
    after: Values
    last: Values | None

class Logs:
    @property
    def entries(self) -> Mapping[int, Entry]: ...
    def __init__(
        self,
        call: Callable[[Values, Values], tuple[Values, Values | None]],
        initial: Values,
        ttl_ns: int | None,
        versions: Callable[..., Sequence[Values | None]] | None,
        reason_of: Callable[[BaseException], str],
    ) -> None: ...
    def grow(self, capacity: int) -> None: ...
    def begin(self, slots: Ints) -> Ints: ...
    def set(
        self, slots: Ints, states: list[Values], lasts: list[Values | None], last_ns: Ints
    ) -> None: ...
    def take(
        self,
        order: Ints,
        slots: Ints,
        times: Ints,
        places: Ints,
        numbers: Ints,
        given: Sequence[Values],
        of: list[Any] | None,
    ) -> Ints: ...
    def last_of(self, slots: Ints) -> tuple[list[Values | None], Ints]: ...
    def states_of(self, slots: Ints) -> list[Values]: ...
    def end(self, numbers: Ints) -> tuple[list[Entry], Ints]: ...
    def leave(self, slots: Ints) -> None: ...
    def forget(self, numbers: Ints) -> None: ...

def take_after(
    states: list[Values], lasts: list[Values | None] | None, slots: Ints, ended: list[Entry]
) -> None: ...
def failures(ended: list[Entry]) -> dict[int, str]: ...
def made_of(
    entries: Mapping[int, Entry], numbers: Ints
) -> tuple[Ints, Ints, list[Values], dict[int, str]]: ...
