import numpy as np
import numpy.typing as npt
import pyarrow as pa

def encoded(
    keys: pa.Array,
    values: pa.Array,
    times: npt.NDArray[np.int64],
    headers: pa.Array | None,
    first: int,
    body_bytes_max: int,
) -> tuple[bytes, int]: ...
