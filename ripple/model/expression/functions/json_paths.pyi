import numpy as np
import numpy.typing as npt

LEVELS_MAX: int
STEPS_MAX: int

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]

def matched(
    valid: Bytes | None, offsets: Offsets, data: Bytes, steps: list[bytes | int]
) -> tuple[Bytes, Offsets, Bytes, Bytes]: ...
