import pyarrow as pa

class CsvParser:
    def __init__(
        self,
        columns: list[tuple[pa.DataType, bool, bool, bool, bool, tuple[int, int] | None, bool]],
        line_length_bytes_max: int,
    ) -> None: ...
    def parse(
        self, block: bytes | memoryview
    ) -> tuple[int, int, list[pa.Array], list[tuple[int, int, int, int, int, int]]]: ...
