import numpy as np
import numpy.typing as npt
import pyarrow as pa

def as_lines(
    data: bytes | memoryview, ends: npt.NDArray[np.int32]
) -> tuple[pa.Buffer, npt.NDArray[np.int64]]: ...
