import numpy as np
import numpy.typing as npt

def times(
    valid: npt.NDArray[np.uint8] | None,
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    form: bytes,
    has_zone: bool,
    east_s: int,
    short_ones: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]: ...
def dates(
    valid: npt.NDArray[np.uint8] | None,
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    form: bytes,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]: ...
def texts(
    values: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]: ...
