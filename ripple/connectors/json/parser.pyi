import pyarrow as pa

class JsonParser:
    def __init__(
        self, columns: list[tuple[str, pa.DataType]], line_length_bytes_max: int
    ) -> None: ...
    def parse(
        self, block: bytes | memoryview
    ) -> tuple[int, int, list[pa.Array], list[tuple[int, int, int]]]: ...
