import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

class Messages:
    def __init__(
        self, actions: Flags, sides: Flags, lasts: Flags, numbers: list[Ints], there: list[Flags]
    ) -> None: ...

class Books:
    nbytes: int

    def __init__(
        self,
        depth: int,
        rule: int,
        by_order: bool,
        begins_empty: bool,
        strict: bool,
        kept_max: int,
        shows_levels: bool,
        size_most: int,
        rows_most: int,
        checks: int = 0,
        price_scale: int = 0,
        size_scale: int = 0,
        venue_depth: int = 0,
    ) -> None: ...
    def grow(self, capacity: int) -> None: ...
    def end(self, slots: Ints) -> None: ...
    def copy(self, slots: Ints, to: Books, to_slots: Ints) -> None: ...
    def take(
        self, slots: Ints, begins: Flags, messages: Messages, records: Ints | None = None
    ) -> tuple[Ints, Ints, Ints, Ints]: ...
    def dump(self, slots: Ints) -> list[tuple[Ints, Ints]]: ...
    def load(self, slots: Ints, parts: list[tuple[Ints, Ints]]) -> None: ...
