import numpy as np
import numpy.typing as npt

from ripple.aggregate.exact import ExactSums

def spread(
    slots: npt.NDArray[np.int64],
    sums: ExactSums,
    squares: ExactSums,
    counts: npt.NDArray[np.int64],
    ddof: int,
    root: bool,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]: ...
def spread_of(
    total: tuple[int, int], squares: tuple[int, int], n: int, ddof: int, root: bool
) -> float: ...
