from typing import Any

class Entry:
    number: int
    key: tuple[Any, ...]
    row: tuple[Any, ...]
    of: Any
    result: tuple[Any, ...] | str | None
    after: tuple[Any, ...]
    last: tuple[Any, ...] | None
    def __init__(
        self, number: int, key: tuple[Any, ...], row: tuple[Any, ...], of: Any
    ) -> None: ...
