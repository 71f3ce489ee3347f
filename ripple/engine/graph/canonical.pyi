from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

def fingerprint(value: object) -> int: ...
def canonical(value: object) -> bytes: ...

class Form:
    type: pa.DataType
    def __init__(self, of: pa.DataType) -> None: ...
    def written(
        self, values: Sequence[Any] | pa.Array
    ) -> tuple[list[bytes | None], npt.NDArray[np.int64]]: ...
    def arrow(self, held: list[bytes | None]) -> pa.Array: ...
