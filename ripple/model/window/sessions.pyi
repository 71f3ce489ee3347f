import numpy as np
import numpy.typing as npt

from ripple.model.keys.index import KeyIndex
from ripple.model.schema.exported import Lent

Ints = npt.NDArray[np.int64]

class SessionBook:
    gap_ns: int
    live: int
    def __init__(self, gap_ns: int) -> None: ...
    def assign(
        self, keys: Ints, times_ns: Ints | Lent, index: KeyIndex
    ) -> tuple[Ints, Ints, Ints]: ...
    def ends_ns(self, slots: Ints) -> Ints: ...
    def restore(
        self, keys: Ints, starts_ns: Ints, ends_ns: Ints, slots: Ints, index: KeyIndex
    ) -> None: ...
    def forget(self, keys: Ints, slots: Ints) -> None: ...
    def check_invariants(self) -> None: ...
