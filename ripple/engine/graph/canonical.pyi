from collections.abc import Sequence
from typing import Any

import pyarrow as pa

def fingerprint(value: object) -> int: ...
def canonical(value: object) -> bytes: ...

class Form:
    type: pa.DataType
    def __init__(self, of: pa.DataType) -> None: ...
    def written(self, values: Sequence[Any] | pa.Array) -> Written: ...
    def arrow(self, written: Written) -> pa.Array: ...

class Written:
    values: list[bytes | None]
    fingerprints: list[int]
