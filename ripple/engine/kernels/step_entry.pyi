from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Values = tuple[Any, ...]

class Entry:
    @property
    def number(self) -> int: ...
    @property
    def key(self) -> Values: ...
    @property
    def row(self) -> Values: ...
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
        reason_of: Callable[[Exception], str],
    ) -> None: ...
    def unknown(self, keys: list[Values]) -> list[int]: ...
    def begin(
        self, key: Values, state: Values, last: Values | None, last_ns: int | None
    ) -> None: ...
    def take(
        self,
        keys: list[Values],
        which: Ints,
        times: Ints,
        places: Ints,
        numbers: list[int],
        given: Iterable[Values],
        of: list[Any] | None,
    ) -> list[Entry]: ...
    def last_of(self, key: Values) -> tuple[Values | None, int]: ...
    def end(self, numbers: list[int]) -> list[Entry]: ...
    def forget(self, numbers: list[int]) -> None: ...

def take_after(
    states: list[Values], lasts: list[Values | None] | None, slots: list[int], ended: list[Entry]
) -> None: ...
def failures(ended: list[Entry]) -> dict[int, str]: ...
def made_of(
    entries: Mapping[int, Entry], slots: list[int]
) -> tuple[list[int], list[Values], list[Values], dict[int, str]]: ...
