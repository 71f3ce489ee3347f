from collections.abc import Mapping, Sequence

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.screen import Screen
from ripple.engine.kernels.stored import Stored, Waiting
from ripple.model.keys.index import KeyIndex

class Intake:
    def __init__(
        self,
        screen: Screen,
        places: Mapping[str, int],
        rows: Stored,
        waiting: Waiting,
        *,
        time: str,
        own_time: str,
        own_place: str,
        own_slot: str,
        keys: Sequence[str],
        index: KeyIndex | None,
        texts: bool,
        lateness_ns: int,
        future_ns: int,
        future_ns_max: int,
    ) -> None: ...
    def take(
        self, columns: Columns, first: int, step: int, watermark_ns: int, out_of_order_ns: int
    ) -> tuple[int, int, int] | None: ...
