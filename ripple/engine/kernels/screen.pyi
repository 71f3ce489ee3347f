from collections.abc import Collection, Mapping

from ripple.engine.kernels.columns import Columns, Layout

class Screen:
    def __init__(
        self,
        layout: Layout,
        required: Collection[str],
        checks: Mapping[str, tuple[str, float, float]],
    ) -> None: ...
    def passes(self, columns: Columns) -> bool: ...
