from typing import Any

import numpy as np
import numpy.typing as npt

KINDS: dict[str, int]

def canonical(
    valid: Any, offsets: Any, data: Any, kind: int
) -> tuple[Any, Any, npt.NDArray[np.uint8]]: ...
def members(
    valid: Any, offsets: Any, data: Any
) -> tuple[npt.NDArray[np.int64], tuple[Any, Any], tuple[Any, Any]]: ...
