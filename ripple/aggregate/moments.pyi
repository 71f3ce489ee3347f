from ripple.aggregate.exact import ExactSums
from ripple.aggregate.integers import Counts
from ripple.aggregate.part import Read

class SpreadRead(Read):
    def __init__(
        self, sums: ExactSums, squares: ExactSums, counts: Counts, ddof: int, root: bool
    ) -> None: ...

def spread_of(
    total: tuple[int, int], squares: tuple[int, int], n: int, ddof: int, root: bool
) -> float: ...
