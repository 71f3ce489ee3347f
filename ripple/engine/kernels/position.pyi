from typing import Any

class PositionCall:
    def __init__(
        self,
        method: str,
        *,
        has_fee: bool,
        has_busted: bool,
        factor: int,
        fee_factor: int,
        limits: tuple[int, int],
        lots_max: int,
    ) -> None: ...
    def __call__(
        self, before: tuple[Any, ...], row: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]: ...
