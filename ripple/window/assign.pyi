import numpy as np
import numpy.typing as npt

from ripple.schema.exported import Lent

Ints = npt.NDArray[np.int64]

def tumbling(times_ns: Ints | Lent, size_ns: int) -> Ints: ...
def sliding(times_ns: Ints | Lent, size_ns: int, slide_ns: int) -> tuple[Ints, Ints]: ...
def reached_count(
    slots: Ints, elements: Ints, count: int
) -> tuple[npt.NDArray[np.uint8], Ints]: ...
