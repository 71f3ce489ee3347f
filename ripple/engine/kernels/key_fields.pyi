import numpy as np
import numpy.typing as npt

from ripple.model.keys.space import Hashes, KeySpace

Ints = npt.NDArray[np.int64]

class KeyFields:
    def __init__(self, space: KeySpace) -> None: ...
    def positions(self, slots: Ints, hashes: Hashes) -> Ints: ...
