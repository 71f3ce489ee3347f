import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

def last_before(
    last: Ints,
    their_slots: Ints,
    their_times: Ints,
    numbers: Ints,
    slots: Ints,
    times: Ints,
    *,
    is_strict: bool,
) -> Ints: ...

class Runs:
    @property
    def count(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def add(
        self, slots: Ints, times_ns: Ints, number: int, capacity: int, free_ns: int
    ) -> None: ...
    def match(
        self,
        slots: Ints,
        times_ns: Ints,
        lo_ns: int,
        hi_ns: int,
        most: int,
        records: Ints | None = None,
        room: int = ...,
    ) -> tuple[Ints, Ints]: ...
    def free_below(self, slots: Ints, time_ns: int) -> Ints: ...
