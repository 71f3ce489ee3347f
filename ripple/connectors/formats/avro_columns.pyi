from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KINDS: dict[str, int]

def decode(
    data: bytes | memoryview,
    ends: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int64],
    skipped: int,
    fields: Sequence[tuple[int, int, bool]],
) -> tuple[list[pa.Array], list[tuple[int, int]]]: ...
