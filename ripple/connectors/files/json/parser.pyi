import numpy as np
import numpy.typing as npt
import pyarrow as pa

class JsonParser:
    objects: list[str]
    def __init__(
        self,
        columns: list[tuple[str, pa.DataType]],
        line_length_bytes_max: int,
        paths: dict[str, tuple[str, ...]] | None = None,
        digits: frozenset[str] = ...,
        arrays: frozenset[str] = ...,
    ) -> None: ...
    def parse(
        self, block: bytes | memoryview
    ) -> tuple[int, int, list[pa.Array], list[tuple[int, int, int]]]: ...
    def parse_values(
        self, data: bytes | memoryview, ends: npt.NDArray[np.int32]
    ) -> tuple[list[pa.Array], list[tuple[int, int, int]]]: ...
