from ripple.model.aggregate.exact import ExactSums
from ripple.model.aggregate.integers import Counts
from ripple.model.aggregate.part import Read

class SpreadRead(Read):
    def __init__(
        self, sums: ExactSums, squares: ExactSums, counts: Counts, ddof: int, root: bool
    ) -> None: ...

def spread_of(
    total: tuple[int, int], squares: tuple[int, int], n: int, ddof: int, root: bool
) -> float: ...
