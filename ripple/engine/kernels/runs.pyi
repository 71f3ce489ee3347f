import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

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

def records_of(times_ns: Ints, places: Ints, rows: int) -> Ints: ...
def paired(
    records: Ints,
    places: Ints,
    counts: Ints,
    numbers: Ints,
    most: int,
    least: Ints | None = None,
    first: int = 0,
) -> tuple[Ints, Ints, Ints, Ints, int]: ...
