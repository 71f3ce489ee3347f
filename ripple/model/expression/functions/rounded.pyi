import numpy as np
import numpy.typing as npt

CAN_FUSE: bool
FUNCTIONS: dict[str, int]

def compute(
    name: str,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64] | None = None,
    *,
    fused: bool = ...,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]: ...
