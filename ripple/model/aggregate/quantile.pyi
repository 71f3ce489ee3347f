from typing import Any

import numpy as np
import numpy.typing as npt

_Integers = npt.NDArray[np.int64]

def positions(
    sizes: _Integers, numerator: int, denominator: int, nearest: bool
) -> tuple[_Integers, _Integers]: ...
def interpolate(
    low: npt.NDArray[Any], high: npt.NDArray[Any], remainders: _Integers, denominator: int
) -> npt.NDArray[np.float64]: ...
