import numpy as np
import numpy.typing as npt

from ripple.model.keys.index import KeyIndex
from ripple.model.schema.exported import Lent

Ints = npt.NDArray[np.int64]

class Tumbling:
    def __init__(self, index: KeyIndex, size_ns: int) -> None: ...
    def slots(self, keys: Ints, times_ns: Ints | Lent) -> Ints: ...

class Zoned(Tumbling):
    def __init__(self, index: KeyIndex, begins_ns: Ints, elapsed_ns: int) -> None: ...

def ended(index: KeyIndex, slots: Ints, size_ns: int, until_ns: int) -> Ints: ...
def sliding(times_ns: Ints | Lent, size_ns: int, slide_ns: int) -> tuple[Ints, Ints]: ...
def reached_count(
    slots: Ints, elements: Ints, count: int
) -> tuple[npt.NDArray[np.uint8], Ints]: ...
