from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ripple.engine.graph.column import Column
from ripple.engine.kernels.row_order import Near
from ripple.engine.kernels.stored import Stored
from ripple.model.keys.index import KeyIndex

Ints = npt.NDArray[np.int64]

class OpenRows:
    left: Stored
    right: Stored
    def __init__(
        self,
        left: Stored,
        right: Stored,
        own: tuple[str, str, str],
        near: Near,
        *,
        is_inner: bool,
        deleted: str | None,
        shown: list[tuple[bool, str]],
        typed: Callable[[int, Ints], tuple[Any, Any]],
    ) -> None: ...
    def take(
        self,
        right: bool,
        held: Stored,
        count: int,
        of: KeyIndex | None,
        into: KeyIndex | None,
        slots: Ints | None,
    ) -> None: ...
    def places(self) -> Ints: ...
    def show_by_origin(
        self,
        name: bytes,
        names: KeyIndex,
        records: KeyIndex,
        rows: KeyIndex,
        base: int,
        inputs: int,
        indexes: int,
    ) -> None: ...
    def show_at(self, slots: Ints, capacity: int) -> None: ...
    def look(self) -> None: ...
    def changed(self) -> Ints: ...
    def matched(self, slots: Ints) -> tuple[Ints, Ints, Ints]: ...
    def show(self, column: Column) -> None: ...
    def end_below(self, mark_ns: int, ends: bool) -> Ints: ...
    def leave(self, slots: Ints) -> None: ...
    def drop(
        self, oldest_ns: int, known_ns: int, is_backward: bool, capacity: int
    ) -> npt.NDArray[np.bool_]: ...
    @property
    def nbytes(self) -> int: ...
