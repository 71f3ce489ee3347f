from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KINDS: dict[pa.DataType, int]

def encode(
    columns: Sequence[pa.Array],
    labels: Sequence[bytes],
    unions: Sequence[bool],
    head: bytes,
    is_there: npt.NDArray[np.uint8],
    *,
    avro: bool,
    raw: Sequence[int] = (),
) -> pa.Array: ...
