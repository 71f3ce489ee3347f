from typing import TypeAlias

import pyarrow as pa

ParserColumn: TypeAlias = tuple[
    pa.DataType, bool, bool, bool, tuple[float, float] | None, tuple[int, int], bool
]

WAY: str
HAS_WIDE: bool

class CsvParser:
    careful_lines: int
    def __init__(
        self,
        columns: list[ParserColumn],
        line_length_bytes_max: int,
        comments: str,
        *,
        delimiter: str = ",",
        decimal: str = ".",
        thousands: str = "",
        nulls: tuple[str, ...] = (),
    ) -> None: ...
    def parse(
        self, block: bytes | memoryview, *, final: bool
    ) -> tuple[int, int, list[pa.Array], list[tuple[int, int, int, int, int, int]], int]: ...
